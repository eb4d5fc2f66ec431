/* tw_service_liveness: what runs and since when, what is overdue, whether the driver polls. */
#include "wheel/service/liveness.h"

#include "mpsc/base/process.h"
#include "mpsc/base/entry.h"
#include "wheel/core/service.h"

const char *tw__name_of_timer(const tw_service *service, tw_timer timer)
{
	const struct tw__slots *slots = &service->slots;
	uint64_t entry;
	if (!tw__handle_entry(slots, timer, &entry))
		return NULL;
	uint32_t slot = tw__entry_slot(entry);
	uint64_t word = tw_load_acquire(&slots->words[slot]);
	const char *name = tw__name_of(slots, slot, word);
	/* the name is the timer's if the word is the same before and after */
	uint64_t again = tw_load_relaxed(&slots->words[slot]);
	bool same = (word ^ entry) >> TW__GENERATION_SHIFT == 0 &&
		    (again ^ entry) >> TW__GENERATION_SHIFT == 0;
	return same && tw__word_state(again) != TW__FREE ? name : NULL;
}

static uint64_t span(uint64_t from_ns, uint64_t to_ns)
{
	return to_ns > from_ns ? to_ns - from_ns : 0;
}

/*
 * What the record shows, if it is a run of the service or a task of its pool. now_ns: of the
 * service's clock. A pool's tasks have dates of the monotonic one.
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
		run->since_ns = span(span(run->since_ns, real_ns), now_ns);
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
	out->longest_ns = span(run->since_ns, out->now_ns);
	out->longest_thread = run->thread_id;
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
	if (out->overdue)
		out->overdue_name = tw__name_of_timer(service, out->overdue_timer);
}

static void look_at_pool(tw_service *service, struct tw_service_liveness *out)
{
	pthread_mutex_lock(&tw__registry); /* close takes the pool away under this lock */
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
