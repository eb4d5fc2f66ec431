/*
 * Looks into a service: its timers, what runs, what is overdue, whether it is whole. Calls
 * tw_service_stats.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "executor/pool/layer.h"
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

/* A timer that has not ended. */
struct seen_timer {
	tw_timer timer;
	tw_fn *fn;
	void *arg;
	const char *name; /* or NULL */
};

/* All of one timer: the word is the same before and after. */
static bool look_at_timer(const tw_service *service, const struct tw__walk *at,
			  struct seen_timer *out)
{
	const struct tw__slots *slots = &service->slots;
	const struct tw__record *record = &slots->records[at->slot];
	*out = (struct seen_timer){
	    tw__handle_make(slots, at->slot, tw__word_generation(at->word)),
	    tw_load_acquire(&record->fn),
	    /* acquire: not after the second look */
	    tw_load_acquire(&record->arg),
	    tw__name_of(slots, at->slot, at->word),
	};
	uint64_t again = tw_load_relaxed(&slots->words[at->slot]);
	return tw__word_generation(again) == tw__word_generation(at->word) &&
	       tw__word_state(again) != TW__FREE;
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
	uint64_t left_ns;
	struct seen_timer seen;
	for (struct tw__walk at = tw__walk_over(&service->slots); !r && tw__walk_on(&at);)
		if (look_at_timer(service, &at, &seen) &&
		    tw_remaining(service, seen.timer, &left_ns) == 0)
			r = visit(visitor_arg, seen.timer, seen.fn, seen.arg, left_ns);
	tw__current_run = visiting.outer;
	return r;
}

/* Where a dump goes. */
struct dump {
	tw_service *service;
	FILE *out;
	uint64_t now_ns;
};

/* before, and the name in quotes. */
static void print_name(FILE *out, const char *before, const char *name)
{
	if (!name)
		return;
	fprintf(out, "%s\"", before);
	tw__text_put(out, name, TW__TEXT_PLAIN);
	fputc('"', out);
}

static void print_what(FILE *out, const char *name, tw_fn *fn, void *arg)
{
	char text[TW__FUNCTION_ROOM];
	tw__text_function(text, fn);
	print_name(out, ", ", name);
	fputs(", fn ", out);
	tw__text_put(out, text, TW__TEXT_PLAIN);
	fprintf(out, ", arg %p\n", arg);
}

static void print_run(void *context, const struct tw__seen_run *run)
{
	const struct dump *dump = context;
	fprintf(dump->out, "running for %.3f ms, thread %" PRIu32,
		(double)tw__span(run->since_ns, dump->now_ns) / 1e6, run->thread_id);
	print_what(dump->out, run->name, run->fn, run->arg);
}

/* Armed or disarmed; what runs is listed as that. */
static void print_timer(const struct dump *dump, const struct tw__walk *at)
{
	struct seen_timer seen;
	uint64_t left_ns;
	bool is_disarmed = tw__word_disarmed(at->word);
	if (!look_at_timer(dump->service, at, &seen) ||
	    (!is_disarmed && tw_remaining(dump->service, seen.timer, &left_ns)))
		return;
	fprintf(dump->out, "slot %" PRIu32 " generation %08" PRIx32, (uint32_t)seen.timer.id,
		(uint32_t)(seen.timer.id >> 32));
	if (is_disarmed)
		fputs(" disarmed", dump->out);
	else
		fprintf(dump->out, " pending, due in %.3f ms", (double)left_ns / 1e6);
	print_what(dump->out, seen.name, seen.fn, seen.arg);
}

/* The members of struct tw_service_stats, in order. */
static const char members[] =
    "scheduled\0fired\0cancelled\0dropped\0pending\0rejected\0runs\0overruns\0resets\0"
    "resets_eager\0refused\0wakeups\0ticks\0tick_cpu_ns\0tick_cpu_max_ns\0entries\0"
    "dead_entries\0retired_slots\0clock_steps\0threads\0memory_bytes\0"
    "lateness.count\0lateness.p50_ns\0lateness.p99_ns\0lateness.p999_ns\0lateness.max_ns\0"
    "wait.count\0wait.p50_ns\0wait.p99_ns\0wait.p999_ns\0wait.max_ns\0"
    "run.count\0run.p50_ns\0run.p99_ns\0run.p999_ns\0run.max_ns\0"
    "groups\0group_members\0disarmed";

/* Those that are not 0. */
static void print_stats(const struct dump *dump)
{
	enum { COUNT = sizeof(struct tw_service_stats) / sizeof(uint64_t) };
	union {
		struct tw_service_stats stats;
		uint64_t values[COUNT]; /* the first is the size */
	} all = {.stats.size = sizeof all.stats};
	tw_service_stats(dump->service, &all.stats); /* cannot fail */
	fputs("statistics:", dump->out);
	const char *name = members;
	for (int i = 1; i < COUNT; i++, name += strlen(name) + 1)
		if (all.values[i])
			fprintf(dump->out, " %s=%" PRIu64, name, all.values[i]);
	fputc('\n', dump->out);
}

int tw_service_dump(tw_service *service, FILE *out)
{
	TW__UNCANCELLED;
	int r = out ? tw__service_check(service) : tw__invalid("out is NULL");
	if (r)
		return r;
	struct dump dump = {service, out, tw__clock_read(service)};
	if (service->config.name) {
		print_name(out, "service ", service->config.name);
		fputc('\n', out);
	}
	print_stats(&dump);
	tw__runs_visit(service, dump.now_ns, print_run, &dump);
	for (struct tw__walk at = tw__walk_over(&service->slots); tw__walk_on(&at);)
		print_timer(&dump, &at);
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
	struct tw__walk oldest = {0};
	struct seen_timer seen;
	for (struct tw__walk at = tw__walk_over(slots); tw__walk_on(&at);) {
		/* after the word: no near word is far ahead of it */
		uint64_t cursor = tw_load_relaxed(&service->gate.cursor), tick;
		if (!tw__word_armed(at.word) ||
		    !tw__deadline_read(slots, at.slot, &at.word, cursor, &tick))
			continue; /* it has just changed */
		uint64_t late_ns = tw__span(tw__tick_ns(service, tick), out->now_ns);
		out->overdue += late_ns > 0;
		if (late_ns <= out->overdue_ns)
			continue;
		out->overdue_ns = late_ns;
		oldest = at;
	}
	if (out->overdue) {
		bool is_there = look_at_timer(service, &oldest, &seen);
		out->overdue_timer = seen.timer;
		out->overdue_name = is_there ? seen.name : NULL;
	}
}

static void look_at_pool(tw_service *service, struct tw_service_liveness *out)
{
	pthread_mutex_lock(&tw__registry); /* close takes the pool away under it */
	tw_pool *pool = tw_load_relaxed(&service->watch.pool);
	if (pool)
		tw__pool_look(pool, out);
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
	bool strange = false;
	for (struct tw__walk at = tw__walk_over(&service->slots); tw__walk_on(&at); in_use++) {
		uint64_t state = tw__word_state(at.word);
		filed += is_filed(at.word);
		if (!tw__word_waits(at.word) && state != TW__RUNNING && state != TW__RELEASING)
			strange = true;
	}
	struct tw_service_stats stats = {.size = sizeof stats};
	tw_service_stats(service, &stats); /* cannot fail */
	uint64_t ended = stats.fired + stats.cancelled + stats.dropped;
	if (!wrong && strange)
		wrong = "a slot is in no known state";
	if (!wrong && at_rest && !tw__lanes_unread(service) && covered != filed)
		wrong = "a timer that is filed has no entry, or two";
	if (!wrong && at_rest && stats.scheduled != ended + in_use)
		wrong = "ledger: scheduled is not the sum of what has ended and what is in use";
	if (wrong)
		snprintf(why, why_size, "%s", wrong);
	return wrong ? -EFAULT : 0;
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
