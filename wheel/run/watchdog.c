#include "wheel/run/watchdog.h"

#include <errno.h>
#include <string.h>

#include "wheel/run/run.h"

void tw__running_none(struct tw__local *local)
{
	if (tw_likely(!tw__current_run))
		tw_store_relaxed(&local->running, 0);
}

/* ------------------------------------------------------------------- looking */

/* What a thread shows. False: nothing. */
static bool shown(const struct tw__local *local, struct tw__running *out)
{
	out->entry = tw_load_acquire(&local->running); /* V1 */
	out->since_ns = tw_load_relaxed(&local->running_since_ns);
	return out->entry != 0;
}

/* The callback of a run, if it is still that run: the word is the same before and after. */
static tw_fn *fn_of(tw_service *service, uint64_t entry)
{
	const struct tw__slots *slots = &service->slots;
	uint32_t slot = tw__entry_slot(entry);
	uint64_t word = tw_load_acquire(&slots->words[slot]);
	tw_fn *fn = tw_load_acquire(&slots->records[slot].fn); /* acquire: not after the second look */
	uint64_t again = tw_load_relaxed(&slots->words[slot]);
	bool same = (word ^ entry) >> TW__GENERATION_SHIFT == 0 && (again ^ entry) >> TW__GENERATION_SHIFT == 0;
	return same && tw__word_state(again) != TW__FREE ? fn : NULL;
}

static uint64_t span(uint64_t from_ns, uint64_t to_ns)
{
	return to_ns > from_ns ? to_ns - from_ns : 0;
}

static void set_longest(tw_service *service, const struct tw__local *local, struct tw__running run,
			struct tw_liveness *out)
{
	uint32_t generation = (uint32_t)(run.entry >> TW__GENERATION_SHIFT);
	out->longest = tw__handle_make(&service->slots, tw__entry_slot(run.entry), generation);
	out->longest_fn = fn_of(service, run.entry);
	out->longest_since_ns = run.since_ns;
	out->longest_ns = span(run.since_ns, out->now_ns);
	out->longest_thread = tw_load_relaxed(&local->thread_id);
}

static void look_at_threads(tw_service *service, struct tw_liveness *out)
{
	for (struct tw__lane *lane = tw__queue_first(&service->queue); lane; lane = lane->next) {
		const struct tw__local *local = (const struct tw__local *)lane;
		struct tw__running run;
		if (!shown(local, &run))
			continue;
		if (out->running++ == 0 || run.since_ns < out->longest_since_ns)
			set_longest(service, local, run, out);
	}
}

/* When the tick thread should turn next at the latest, as far as it has said. */
static uint64_t expected_turn_ns(const tw_service *service, uint64_t turned_ns)
{
	if (!service->threaded || tw_load_acquire(&service->stopped))
		return UINT64_MAX;
	uint64_t word = tw__gate_look(&service->gate);
	return word & TW__GATE_PARKED ? tw_load_relaxed(&service->gate.plan) : turned_ns + service->tick_ns;
}

static void look_at_driver(tw_service *service, struct tw_liveness *out)
{
	uint64_t turned_ns = tw_load_relaxed(&service->turned_ns);
	out->now_ns = tw__clock_read(service);
	out->since_turn_ns = span(turned_ns, out->now_ns);
	out->turn_late_ns = span(expected_turn_ns(service, turned_ns), out->now_ns);
}

static void look_at_timers(tw_service *service, struct tw_liveness *out)
{
	const struct tw__slots *slots = &service->slots;
	uint64_t cursor = tw_load_relaxed(&service->gate.cursor), now_ns = out->now_ns;
	uint32_t end = tw_load_acquire(&slots->fresh);
	for (uint32_t slot = 1; slot < end; slot++) {
		uint64_t word = tw_load_relaxed(&slots->words[slot]);
		if (!tw__word_armed(word) || word & (TW__UNFILED | TW__FAR))
			continue; /* far ones: hours away when they were last met */
		uint64_t late_ns = span(tw__tick_ns(service, tw__word_deadline(word, cursor)), now_ns);
		if (late_ns == 0)
			continue;
		out->overdue++;
		if (late_ns <= out->overdue_ns)
			continue;
		out->overdue_ns = late_ns;
		out->overdue_timer = tw__handle_make(slots, slot, tw__word_generation(word));
	}
}

int tw_liveness_get(tw_service *service, struct tw_liveness *out)
{
	if (!service || !out || out->size < offsetof(struct tw_liveness, since_turn_ns))
		return -EINVAL;
	if (tw__forked(service))
		return -EPERM;
	struct tw_liveness seen = {.size = out->size};
	look_at_driver(service, &seen);
	look_at_threads(service, &seen);
	look_at_timers(service, &seen);
	if (out->size > sizeof seen)
		memset((char *)out + sizeof seen, 0, out->size - sizeof seen);
	memcpy(out, &seen, out->size < sizeof seen ? out->size : sizeof seen);
	return 0;
}

/* --------------------------------------------------------------------- stuck */

/* The user's function is run as a callback is: what would wait for the driver is refused to it. */
static void tell(tw_service *service, const struct tw_liveness *seen)
{
	struct tw__run run = {.outer = tw__current_run, .service = service};
	tw__current_run = &run;
	service->config.on_stuck(service->config.stuck_arg, seen);
	tw__current_run = run.outer;
}

static void tell_if_stuck(tw_service *service, struct tw__local *local)
{
	struct tw__running run;
	if (!shown(local, &run) || run.since_ns == local->stuck_told_ns ||
	    span(run.since_ns, service->last_now_ns) < service->config.stuck_ns)
		return;
	struct tw_liveness seen = {.size = sizeof seen};
	look_at_driver(service, &seen);
	look_at_threads(service, &seen);
	set_longest(service, local, run, &seen);
	if (!seen.longest_fn)
		return; /* it has just ended */
	local->stuck_told_ns = run.since_ns;
	tell(service, &seen);
}

void tw__tell_stuck(tw_service *service)
{
	for (struct tw__lane *lane = tw__queue_first(&service->queue); lane; lane = lane->next)
		tell_if_stuck(service, (struct tw__local *)lane);
}

uint64_t tw__look_for_stuck_by(tw_service *service, uint64_t deadline_ns)
{
	if (tw_likely(!service->config.on_stuck) || (tw_load_relaxed(&service->batches_out) & ~TW__CLOSER_WAITS) == 0)
		return deadline_ns;
	uint64_t now_ns = service->last_now_ns, stuck_ns = service->config.stuck_ns, by_ns = now_ns + stuck_ns;
	for (struct tw__lane *lane = tw__queue_first(&service->queue); lane; lane = lane->next) {
		struct tw__local *local = (struct tw__local *)lane;
		struct tw__running run;
		if (shown(local, &run) && run.since_ns != local->stuck_told_ns && run.since_ns + stuck_ns < by_ns)
			by_ns = run.since_ns + stuck_ns;
	}
	if (by_ns < now_ns + service->tick_ns)
		by_ns = now_ns + service->tick_ns; /* one that has ended is shown a moment longer */
	return by_ns < deadline_ns ? by_ns : deadline_ns;
}
