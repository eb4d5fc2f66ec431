/* Looks into a service: its timers, what runs, what is overdue, whether it is whole. */
#include <errno.h>
#include <inttypes.h>
#include <time.h>

#include "mpsc/base/process.h"
#include "wheel/core/service.h"
#include "mpsc/base/text.h"
#include "wheel/core/frame.h"
#include "wheel/driver/driver.h"
#include "wheel/timer/cancel.h"
#include "wheel/run/run.h"
#include "wheel/service/parts.h"
#include "wheel/run/work.h"

/* ---------------------------------------------------------- foreach and dump */

/* The timer's name; NULL if it has none, or has ended. */
static const char *name_of_timer(const tw_service *service, tw_timer timer)
{
	const struct tw__slots *slots = &service->slots;
	uint64_t entry;
	if (!tw__handle_entry(slots, timer, &entry))
		return NULL;
	uint32_t slot = tw__entry_slot(entry);
	uint64_t word = tw_load_acquire(&slots->words[slot]);
	const char *name = tw__name_of(slots, slot, word);
	/* the same word before and after: the name is the timer's */
	uint64_t again = tw_load_relaxed(&slots->words[slot]);
	bool same = (word ^ entry) >> TW__GENERATION_SHIFT == 0 &&
		    (again ^ entry) >> TW__GENERATION_SHIFT == 0;
	return same && tw__word_state(again) != TW__FREE ? name : NULL;
}

/* fn and arg of a pending timer, which belong together: the word is the same before and after. */
static bool read_record(tw_service *service, uint32_t slot, uint64_t *word, tw_fn **fn, void **arg)
{
	*word = tw_load_acquire(&service->slots.words[slot]); /* WORD1 */
	if (tw__word_state(*word) == TW__FREE)
		return false;
	*fn = tw_load_acquire(&service->slots.records[slot].fn);
	/* acquire: not after the second look */
	*arg = tw_load_acquire(&service->slots.records[slot].arg);
	uint64_t again = tw_load_relaxed(&service->slots.words[slot]);
	return tw__word_generation(again) == tw__word_generation(*word) &&
	       tw__word_state(again) != TW__FREE;
}

/*
 * Visits the armed timers, or the disarmed ones (left_ns: UINT64_MAX). The visitor's answer if not
 * 0.
 */
static int each_timer(tw_service *service, bool disarmed, tw_visit_fn *visit, void *visitor_arg)
{
	uint32_t end = tw_load_acquire(&service->slots.depot.fresh);
	for (uint32_t slot = 1; slot < end; slot++) {
		uint64_t word, left_ns = UINT64_MAX;
		tw_fn *fn;
		void *arg;
		if (!read_record(service, slot, &word, &fn, &arg))
			continue;
		tw_timer timer = tw__handle_make(&service->slots, slot, tw__word_generation(word));
		bool is_one = disarmed ? tw__word_disarmed(word)
				       : tw_remaining(service, timer, &left_ns) == 0;
		int r = is_one ? visit(visitor_arg, timer, fn, arg, left_ns) : 0;
		if (r)
			return r;
	}
	return 0;
}

int tw_service_foreach(tw_service *service, tw_visit_fn *visit, void *visitor_arg)
{
	int r = visit ? tw__service_check(service) : tw__invalid("visit is NULL");
	if (r)
		return r;
	/* in the visitor the thread counts as inside: it must not end the service */
	struct tw__run visiting = {.outer = tw__current_run, .service = service};
	if (!tw__inside(service)) /* a callback that lists stays the current one */
		tw__current_run = &visiting;
	r = each_timer(service, false, visit, visitor_arg);
	tw__current_run = visiting.outer;
	return r;
}

/* Where a dump goes. */
struct dump {
	tw_service *service;
	FILE *out;
	uint64_t now_ns;
};

static void print_function(FILE *out, tw_fn *fn, void *arg)
{
	char text[TW__FUNCTION_ROOM];
	tw__text_function(text, fn);
	fputs(", fn ", out);
	tw__text_put(out, text, TW__TEXT_PLAIN);
	fprintf(out, ", arg %p\n", arg);
}

static void print_name(FILE *out, const char *name)
{
	if (!name)
		return;
	fputs(", \"", out);
	tw__text_put(out, name, TW__TEXT_PLAIN);
	fputc('"', out);
}

static void print_run(void *context, const struct tw__seen_run *run)
{
	const struct dump *dump = context;
	fprintf(dump->out, "running for %.3f ms, thread %" PRIu32,
		(double)tw__span(run->since_ns, dump->now_ns) / 1e6, run->thread_id);
	print_name(dump->out, run->name);
	print_function(dump->out, run->fn, run->arg);
}

static int print_timer(void *context, tw_timer timer, tw_fn *fn, void *arg, uint64_t remaining_ns)
{
	const struct dump *dump = context;
	fprintf(dump->out, "slot %" PRIu32 " generation %08" PRIx32, (uint32_t)timer.id,
		(uint32_t)(timer.id >> 32));
	if (remaining_ns == UINT64_MAX)
		fputs(" disarmed", dump->out);
	else
		fprintf(dump->out, " pending, due in %.3f ms", (double)remaining_ns / 1e6);
	print_name(dump->out, name_of_timer(dump->service, timer));
	print_function(dump->out, fn, arg);
	return 0;
}

int tw_service_dump(tw_service *service, FILE *out)
{
	TW__UNCANCELLED;
	int r = out ? tw__service_check(service) : tw__invalid("out is NULL");
	if (r)
		return r;
	struct dump dump = {service, out, tw__clock_read(service)};
	if (service->config.name) {
		fputs("service \"", out);
		tw__text_put(out, service->config.name, TW__TEXT_PLAIN);
		fputs("\"\n", out);
	}
	tw__runs_visit(service, dump.now_ns, print_run, &dump);
	each_timer(service, false, print_timer, &dump);
	each_timer(service, true, print_timer, &dump);
	struct tw__kept *kept = tw_load_acquire(&service->kept);
	if (kept)
		kept->dump(service, out, dump.now_ns);
	return 0;
}

/* ------------------------------------------------------------------ liveness */

/*
 * What the record shows, if it is a run of the service or a task of its pool, whose dates are
 * monotonic.
 */
static bool look_at_record(tw_service *service, struct tw__run_record *record, uint64_t now_ns,
			   struct tw__seen_run *run)
{
	uint64_t word = tw_load_acquire(&record->word); /* frame.h, USER1 */
	const void *owner = tw_load_acquire(&record->owner);
	bool is_pools = owner != service;
	if (!(word & 1) || (is_pools && owner != tw_load_relaxed(&service->watch.pool)))
		return false;
	*run = (struct tw__seen_run){.fn = tw_load_acquire(&record->fn),
				     .arg = tw_load_acquire(&record->arg),
				     .name = tw_load_acquire(&record->name),
				     .since_ns = tw_load_acquire(&record->since_ns),
				     .thread_id = tw_load_relaxed(&record->thread_id)};
	uint64_t real_ns = is_pools ? tw_clock_now(tw_clock_monotonic()) : 0;
	if (run->since_ns == (TW__USER_UNDATED | (word - 1))) {
		uint64_t date_ns = is_pools ? real_ns : tw__clock_read(service);
		if (tw_cas_acq_rel(&record->since_ns, &run->since_ns, date_ns)) /* USER2 */
			run->since_ns = date_ns;
	}
	if (tw_load_relaxed(&record->word) != word)
		return false;
	if (is_pools)
		run->since_ns = tw__span(tw__span(run->since_ns, real_ns), now_ns);
	return true;
}

void tw__runs_visit(tw_service *service, uint64_t now_ns, tw__see_run_fn *see, void *context)
{
	struct tw__seen_run run;
	struct tw__run_record *record = tw_load_acquire(&tw__run_records); /* QUEUE3 */
	for (; record; record = record->next)
		if (look_at_record(service, record, now_ns, &run))
			see(context, &run);
}

static void count_run(void *context, const struct tw__seen_run *run)
{
	struct tw_service_liveness *out = context;
	if (out->running++ && run->since_ns >= out->longest_since_ns)
		return;
	out->longest_fn = run->fn;
	out->longest_arg = run->arg;
	out->longest_name = run->name;
	out->longest_since_ns = run->since_ns;
	out->longest_ns = tw__span(run->since_ns, out->now_ns);
	out->longest_thread = run->thread_id;
}

/* When the tick thread should poll next; UINT64_MAX if it has not said. */
static uint64_t expected_turn_ns(const tw_service *service, uint64_t turned_ns)
{
	if (!service->threaded || tw_load_acquire(&service->phase.stopped))
		return UINT64_MAX;
	uint64_t word = tw__gate_look(&service->gate);
	return word & TW__GATE_PARKED ? tw_load_relaxed(&service->gate.plan)
				      : turned_ns + service->time.tick_ns;
}

static void look_at_driver(tw_service *service, struct tw_service_liveness *out)
{
	uint64_t turned_ns = tw_load_relaxed(&service->watch.turned_ns);
	out->now_ns = tw__clock_read(service);
	out->since_turn_ns = tw__span(turned_ns, out->now_ns);
	out->turn_late_ns = tw__span(expected_turn_ns(service, turned_ns), out->now_ns);
}

static void look_at_timers(tw_service *service, struct tw_service_liveness *out)
{
	struct tw__slots *slots = &service->slots;
	uint64_t now_ns = out->now_ns;
	uint32_t end = tw_load_acquire(&slots->depot.fresh);
	for (uint32_t slot = 1; slot < end; slot++) {
		uint64_t word = tw_load_acquire(&slots->words[slot]), tick;
		/* after the word: no near word is far ahead of it */
		uint64_t cursor = tw_load_relaxed(&service->gate.cursor);
		if (!tw__word_armed(word) || !tw__deadline_read(slots, slot, &word, cursor, &tick))
			continue; /* it has just changed */
		uint64_t late_ns = tw__span(tw__tick_ns(service, tick), now_ns);
		if (late_ns == 0)
			continue;
		out->overdue++;
		if (late_ns <= out->overdue_ns)
			continue;
		out->overdue_ns = late_ns;
		out->overdue_timer = tw__handle_make(slots, slot, tw__word_generation(word));
	}
	if (out->overdue)
		out->overdue_name = name_of_timer(service, out->overdue_timer);
}

static void look_at_pool(tw_service *service, struct tw_service_liveness *out)
{
	pthread_mutex_lock(&tw__registry); /* close takes the pool away under it */
	void *pool = tw_load_relaxed(&service->watch.pool);
	if (pool)
		service->watch.pool_look(pool, out);
	pthread_mutex_unlock(&tw__registry);
}

int tw_service_liveness(tw_service *service, struct tw_service_liveness *out)
{
	int r = TW__OUT_CHECK(tw_service_liveness, out, since_turn_ns);
	if (!r)
		r = tw__service_check(service);
	if (r)
		return r;
	struct tw_service_liveness seen = {0};
	look_at_driver(service, &seen);
	tw__runs_visit(service, seen.now_ns, count_run, &seen);
	look_at_timers(service, &seen);
	look_at_pool(service, &seen);
	tw__struct_write(out, &seen, sizeof seen);
	return 0;
}

/* ------------------------------------------------------------------ validate */

/* One entry stands for it. A RELOCATED one may be covered by the driver's location. */
static bool is_filed(uint64_t word)
{
	return (tw__word_armed(word) || tw__word_filed(word)) && !(word & TW__RELOCATED);
}

static uint64_t count_chunks(tw_service *service, const struct tw__chunk *chunk, bool ready)
{
	uint64_t covered = 0;
	for (; chunk; chunk = chunk->next)
		for (unsigned i = ready ? chunk->holder_count : 0; i < chunk->count; i++) {
			uint64_t entry = chunk->entries[i];
			uint64_t word =
			    tw_load_acquire(&service->slots.words[tw__entry_slot(entry)]);
			covered += (word ^ entry) >> TW__GENERATION_SHIFT == 0 && is_filed(word);
		}
	return covered;
}

/* Each filed, armed timer is in the wheel or among what is ready. */
static uint64_t count_entries(tw_service *service)
{
	const struct tw__wheel *wheel = &service->driver->wheel;
	const struct tw__outbox *box = service->driver->outboxes.first;
	uint64_t covered = count_chunks(service, wheel->late.list.first, false);
	for (unsigned i = 0; i < wheel->level_count; i++)
		for (uint64_t b = 0; b <= wheel->levels[i].mask; b++)
			covered +=
			    count_chunks(service, wheel->levels[i].buckets[b].list.first, false);
	for (; box; box = box->next)
		covered += count_chunks(service, box->runs.first, true);
	return covered;
}

enum { MOMENT_NS = 50000, MOMENTS = 2000 };

static bool lanes_empty(tw_service *service)
{
	for (struct tw__lane *lane = tw__queue_first(&service->queue); lane; lane = lane->next)
		if (tw__lane_unread(lane) || tw__lane_unread(tw__young_of(lane)))
			return false;
	return true;
}

/* Whether this thread is in a callback of the service, or is its driver. */
static bool is_inside(const tw_service *service)
{
	return tw__inside(service) || tw__inside_poll(service);
}

/* Nothing of the service is out; the driver is held, so nothing follows. */
static bool comes_to_rest(tw_service *service)
{
	const struct timespec moment = {.tv_nsec = MOMENT_NS};
	int left = is_inside(service) ? 0 : MOMENTS;
	while (tw_load_acquire(&service->submitted->batches_out)) { /* RUN4 */
		if (left-- == 0)
			return false;
		nanosleep(&moment, NULL);
	}
	return true;
}

static int inspect_check(tw_service *service, char *why, size_t why_size)
{
	bool at_rest = comes_to_rest(service);
	const char *wrong = tw__wheel_check(&service->driver->wheel);
	uint64_t in_use = 0, filed = 0, covered = count_entries(service);
	uint32_t end = tw_load_acquire(&service->slots.depot.fresh), strange = 0;
	for (uint32_t slot = 1; slot < end; slot++) {
		uint64_t word = tw_load_acquire(&service->slots.words[slot]),
			 state = tw__word_state(word);
		in_use += state != TW__FREE;
		filed += state != TW__FREE && is_filed(word);
		if (state != TW__FREE && !tw__word_waits(word) && state != TW__RUNNING &&
		    state != TW__RELEASING)
			strange = slot;
	}
	struct tw_service_stats stats = {.size = sizeof stats};
	bool has_ledger = at_rest && tw_service_stats(service, &stats) == 0;
	uint64_t ended = stats.fired + stats.cancelled + stats.dropped;
	if (wrong)
		snprintf(why, why_size, "%s", wrong);
	else if (strange)
		snprintf(why, why_size, "slot %" PRIu32 " is in no known state", strange);
	else if (at_rest && lanes_empty(service) && covered != filed)
		snprintf(why, why_size,
			 "%" PRIu64 " timers are filed, %" PRIu64 " entries stand for them", filed,
			 covered);
	else if (has_ledger && stats.scheduled != ended + in_use)
		snprintf(why, why_size,
			 "ledger: scheduled %" PRIu64 ", ended %" PRIu64 ", pending %" PRIu64,
			 stats.scheduled, ended, in_use);
	else
		return 0;
	return -EFAULT;
}

int tw_service_validate(tw_service *service, char *why, size_t why_size)
{
	TW__UNCANCELLED;
	int r = tw__service_check(service);
	if (r)
		return r;
	if (!is_inside(service))
		pthread_mutex_lock(&service->driving);
	else if (pthread_mutex_trylock(&service->driving)) /* driven here */
		return -EBUSY;
	r = inspect_check(service, why, why ? why_size : 0);
	pthread_mutex_unlock(&service->driving);
	return r;
}
