#include "wheel/run/watchdog.h"

#include <stdlib.h>
#include <string.h>

#include "wheel/run/run.h"
#include "wheel/base/struct_read.h"
#include "wheel/core/frame.h"

enum { TOLD_ROOM = 8 };

void tw__running_hide(tw_service *service)
{
	if (tw__current_run && tw__current_run->service == service)
		tw__user_end(tw__current_run->level);
}

/* ------------------------------------------------------------------- looking */

tw_fn *tw__callback_of(const tw_service *service, uint64_t entry, const char **name)
{
	const struct tw__slots *slots = &service->slots;
	uint32_t slot = tw__entry_slot(entry);
	uint64_t word = tw_load_acquire(&slots->words[slot]);
	/* acquire: not after the second look */
	tw_fn *fn = tw_load_acquire(&slots->records[slot].fn);
	const char *named = tw__name_of(slots, slot, word);
	uint64_t again = tw_load_relaxed(&slots->words[slot]);
	bool same = (word ^ entry) >> TW__GENERATION_SHIFT == 0 &&
		    (again ^ entry) >> TW__GENERATION_SHIFT == 0;
	bool lives = same && tw__word_state(again) != TW__FREE;
	*name = lives ? named : NULL;
	return lives ? fn : NULL;
}

static uint64_t span(uint64_t from_ns, uint64_t to_ns)
{
	return to_ns > from_ns ? to_ns - from_ns : 0;
}

/* The run that a level shows, if it is one of the service's, or a task of its pool. */
static bool look_at_level(const tw_service *service, struct tw__run_level *level, uint64_t now_ns,
			  struct tw__seen_run *run)
{
	const void *pool = tw_load_relaxed(&service->watch.watched_pool);
	if (tw__user_look(level, service, now_ns, run))
		return true;
	uint64_t real_ns = pool ? tw_clock_now(tw_clock_monotonic()) : 0;
	if (!pool || !tw__user_look(level, pool, real_ns, run))
		return false;
	run->since_ns = span(span(run->since_ns, real_ns), now_ns);
	return true;
}

void tw__runs_visit(tw_service *service, uint64_t now_ns, tw__see_run_fn *see, void *context)
{
	struct tw__seen_run run;
	struct tw__run_record *record = tw_load_acquire(&tw__run_records); /* user_code.h, USER2 */
	for (; record; record = tw_load_acquire(&record->next))
		for (unsigned i = 0; i < TW__RUN_LEVELS; i++)
			if (look_at_level(service, &record->levels[i], now_ns, &run))
				see(context, &run);
}

static void set_longest(const struct tw__seen_run *run, struct tw_service_liveness *out)
{
	out->longest = run->timer;
	out->longest_fn = run->fn;
	out->longest_name = run->name;
	out->longest_since_ns = run->since_ns;
	out->longest_ns = span(run->since_ns, out->now_ns);
	out->longest_thread = run->thread_id;
	out->longest_kind = run->kind;
}

static void count_run(void *context, const struct tw__seen_run *run)
{
	struct tw_service_liveness *out = context;
	if (out->running++ == 0 || run->since_ns < out->longest_since_ns)
		set_longest(run, out);
}

/* When the tick thread should poll next at the latest, as far as it has said. */
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
	out->since_turn_ns = span(turned_ns, out->now_ns);
	out->turn_late_ns = span(expected_turn_ns(service, turned_ns), out->now_ns);
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
			continue; /* or it has changed a moment ago */
		uint64_t late_ns = span(tw__tick_ns(service, tick), now_ns);
		if (late_ns == 0)
			continue;
		out->overdue++;
		if (late_ns <= out->overdue_ns)
			continue;
		out->overdue_ns = late_ns;
		out->overdue_timer = tw__handle_make(slots, slot, tw__word_generation(word));
	}
	uint64_t entry;
	if (out->overdue && tw__handle_entry(slots, out->overdue_timer, &entry))
		(void)tw__callback_of(service, entry, &out->overdue_name);
}

/*
 * Whether the pool is full. out->pool_at_max: also, runs wait that it has no worker for. Close does
 * not end the pool meanwhile.
 */
static bool look_at_pool(tw_service *service, struct tw_service_liveness *out, uint64_t *progress)
{
	tw_add_seq_cst(&service->watch.pool_lookers, 1); /* WATCHDOG2 */
	void *pool = tw_load_seq_cst(&service->layers.pool);
	tw__pool_busy_fn *busy = tw_load_acquire(&service->watch.pool_busy);
	bool full = pool && busy && busy(pool, out, progress);
	tw_sub_seq_cst(&service->watch.pool_lookers, 1);
	return full;
}

int tw_service_liveness(tw_service *service, struct tw_service_liveness *out)
{
	int r = TW__OUT_CHECK(tw_service_liveness, out, since_turn_ns);
	if (!r)
		r = tw__service_check(service);
	if (r)
		return r;
	struct tw_service_liveness seen = {0};
	uint64_t progress;
	look_at_driver(service, &seen);
	tw__runs_visit(service, seen.now_ns, count_run, &seen);
	look_at_timers(service, &seen);
	(void)look_at_pool(service, &seen, &progress);
	tw__struct_write(out, &seen, sizeof seen);
	return 0;
}

/* --------------------------------------------------------------------- stuck */

/* The user's function is run as a callback is: what would wait for the driver is refused to it. */
static void watchdog_tell(tw_service *service, const struct tw_service_liveness *seen)
{
	struct tw__run run = {.outer = tw__current_run, .service = service};
	tw__current_run = &run;
	service->config.on_stuck(service->config.stuck_arg, seen);
	tw__current_run = run.outer;
}

/* A look for runs that last too long. */
struct look {
	tw_service *service;
	uint64_t now_ns;
	uint64_t by_ns; /* the next look */
};

static uint64_t number_of(uint64_t level_word)
{
	return level_word >> TW__USER_NUMBER_SHIFT;
}

static bool has_ended(const struct tw__told_run *told)
{
	uint64_t word = tw_load_relaxed(&told->level->word);
	return !(word & TW__USER_RUNS) || number_of(word) != told->number;
}

static bool is_told(const tw_service *service, const struct tw__seen_run *run)
{
	const struct tw__told_runs *told = &service->watch.told;
	for (size_t i = 0; i < told->room; i++)
		if (told->runs[i].level == run->level)
			return told->runs[i].number == number_of(run->word);
	return false;
}

/* A level has one place. NULL: no memory. */
static struct tw__told_run *told_place(struct tw__told_runs *told,
				       const struct tw__run_level *level)
{
	struct tw__told_run *free_place = NULL;
	for (size_t i = 0; i < told->room; i++) {
		struct tw__told_run *at = &told->runs[i];
		if (at->level == level)
			return at;
		if (!at->level || has_ended(at))
			free_place = at;
	}
	if (free_place)
		return free_place;
	size_t room = told->room ? 2 * told->room : TOLD_ROOM;
	struct tw__told_run *runs = realloc(told->runs, room * sizeof *runs);
	if (!runs)
		return NULL;
	memset(&runs[told->room], 0, (room - told->room) * sizeof *runs);
	*told = (struct tw__told_runs){runs, room};
	return &runs[room - 1];
}

/* False: no memory; the next look tries again. */
static bool set_told(tw_service *service, const struct tw__seen_run *run)
{
	struct tw__told_run *place = told_place(&service->watch.told, run->level);
	if (place)
		*place = (struct tw__told_run){run->level, number_of(run->word)};
	return place;
}

static void tell_if_stuck(void *context, const struct tw__seen_run *run)
{
	const struct look *look = context;
	tw_service *service = look->service;
	if (is_told(service, run) || span(run->since_ns, look->now_ns) < service->config.stuck_ns)
		return;
	if (!set_told(service, run))
		return;
	struct tw_service_liveness seen = {.size = sizeof seen};
	look_at_driver(service, &seen);
	tw__runs_visit(service, seen.now_ns, count_run, &seen);
	set_longest(run, &seen);
	watchdog_tell(service, &seen);
}

/* Tells once that runs have waited for a full pool for stuck_ns, and that it has begun none. */
static void tell_if_full(tw_service *service, uint64_t now_ns)
{
	struct tw_service_liveness seen = {.size = sizeof seen};
	uint64_t progress = 0;
	if (now_ns < service->watch.full_look_ns)
		return;
	service->watch.full_look_ns = now_ns + service->config.stuck_ns / 4;
	bool full = look_at_pool(service, &seen, &progress) && seen.pool_at_max;
	if (!full || !service->watch.full_since_ns || progress != service->watch.full_progress) {
		service->watch.full_since_ns = full ? now_ns : 0;
		service->watch.full_progress = progress;
		service->watch.full_told = false;
		return;
	}
	if (service->watch.full_told ||
	    span(service->watch.full_since_ns, now_ns) < service->config.stuck_ns)
		return;
	service->watch.full_told = true;
	look_at_driver(service, &seen);
	tw__runs_visit(service, seen.now_ns, count_run, &seen);
	watchdog_tell(service, &seen);
}

void tw__tell_stuck(tw_service *service, uint64_t now_ns)
{
	TW_ASSERT_DRIVER(service);
	struct look look = {service, now_ns, UINT64_MAX};
	tw__runs_visit(service, now_ns, tell_if_stuck, &look);
	tell_if_full(service, now_ns);
}

/*
 * Whether a full pool may have to be reported later. Work that queues behind busy workers begins no
 * run, so it does not wake the tick thread.
 */
static bool may_fill_pool(tw_service *service)
{
	struct tw_service_liveness seen = {.size = sizeof seen};
	uint64_t progress;
	return !service->watch.full_told && look_at_pool(service, &seen, &progress);
}

/* stuck_ns may be as long as users like. */
static uint64_t stuck_at(const tw_service *service, uint64_t since_ns)
{
	uint64_t stuck_ns = service->config.stuck_ns;
	return since_ns < UINT64_MAX - stuck_ns ? since_ns + stuck_ns : UINT64_MAX;
}

static void look_by(void *context, const struct tw__seen_run *run)
{
	struct look *look = context;
	uint64_t stuck_at_ns = stuck_at(look->service, run->since_ns);
	if (!is_told(look->service, run) && stuck_at_ns < look->by_ns)
		look->by_ns = stuck_at_ns;
}

uint64_t tw__look_for_stuck_by(tw_service *service, uint64_t now_ns, uint64_t deadline_ns)
{
	if (tw_likely(!service->config.on_stuck))
		return deadline_ns;
	_Atomic uint32_t *asleep = tw_load_relaxed(&service->watch.watch_asleep);
	struct look look = {service, now_ns, UINT64_MAX};
	tw_store_seq_cst(asleep, 1); /* user_code.h, USER3 */
	tw__runs_visit(service, now_ns, look_by, &look);
	bool batches = tw_load_relaxed(&service->submitted->batches_out) & ~TW__CLOSE_WAITS;
	if (look.by_ns == UINT64_MAX && !batches && !may_fill_pool(service))
		return deadline_ns;
	tw_store_relaxed(asleep, 0); /* what begins from here on is looked at by then */
	uint64_t latest_ns = stuck_at(service, now_ns),
		 earliest_ns = now_ns + service->time.tick_ns;
	uint64_t by_ns = tw__earlier(look.by_ns, latest_ns);
	by_ns = by_ns < earliest_ns ? earliest_ns : by_ns; /* one look a tick is enough */
	return tw__earlier(by_ns, deadline_ns);
}
