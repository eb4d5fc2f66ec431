#include "wheel/core/wake.h"

#include <limits.h>

/*
 * Dead entries that each producer may leave, beside as many as there are live timers; with those of
 * cancels that have not looked yet, 4096 (G11).
 */
enum { ALLOWANCE = 4096 - TW__CANCELS_PER_WAKE };

uint64_t tw__live_timers(tw_service *service, uint64_t *producers)
{
	uint64_t count = 0, live = -tw_load_relaxed(&service->without_lane.cancelled) -
				   tw_load_relaxed(&service->without_lane.dropped);
	for (struct tw__lane *lane = tw__queue_first(&service->queue); lane; lane = lane->next) {
		struct tw__local *local = (struct tw__local *)lane;
		count += !tw_load_relaxed(&local->of_service);
		live +=
		    tw_load_relaxed(&local->magazine.scheduled) - tw_load_relaxed(&local->fired) -
		    tw_load_relaxed(&local->magazine.cancelled) - tw_load_relaxed(&local->dropped);
	}
	if (producers)
		*producers = count;
	return (int64_t)live > 0 ? live : 0;
}

uint64_t tw__lanes_unread(tw_service *service)
{
	uint64_t n = 0;
	for (struct tw__lane *lane = tw__queue_first(&service->queue); lane; lane = lane->next)
		n += tw__lane_backlog(lane) + tw__lane_backlog(tw__young_of(lane));
	return n;
}

struct tw__dead tw__count_dead(tw_service *service, uint64_t in_wheel)
{
	struct tw__dead dead;
	uint64_t entries = in_wheel + tw__lanes_unread(service), producers;
	dead.live = tw__live_timers(service, &producers);
	dead.allowed = ALLOWANCE * (producers ? producers : 1);
	dead.dead = entries > dead.live ? entries - dead.live : 0;
	return dead;
}

void tw__wake(tw_service *service)
{
	if (tw__gate_look_after_push(&service->gate) & TW__GATE_PARKED)
		tw__gate_ring(&service->gate);
}

void tw__wake_to_sweep(tw_service *service)
{
	if (!(tw__gate_look_after_push(&service->gate) & TW__GATE_PARKED))
		return;
	/* a driver awake meanwhile looks again before it sleeps (park.c) */
	struct tw__dead dead = tw__count_dead(service, tw_load_relaxed(&service->entries));
	if (dead.dead > dead.live + dead.allowed)
		tw__gate_ring(&service->gate);
}

/*
 * A driver that has dropped the entry of a move, and has not seen the caller's push, has published
 * a word and passed its barrier in between (GATE2): then this look sees the move (WORD4).
 */
void tw__wake_if_before_plan(tw_service *service, uint64_t entry, uint64_t tick)
{
	uint32_t slot = tw__entry_slot(entry);
	uint64_t cursor = tw_load_relaxed(&service->gate.cursor), asked = tick;
	uint64_t word = tw_load_acquire(&service->slots.words[slot]); /* WORD4 */
	while ((word ^ entry) >> TW__GENERATION_SHIFT == 0 && tw__word_armed(word) &&
	       !tw__deadline_read(&service->slots, slot, &word, cursor, &asked)) {
	}
	if (tw__is_before_plan(service, tw__earlier(asked, tick)))
		tw__gate_ring(&service->gate);
}

void tw__ring_finish(tw_service *service)
{
	tw_add_seq_cst(&service->finish_bell, 1); /* RUN5 */
	tw__futex_wake(&service->finish_bell, INT_MAX);
}

void tw__work_push_and_ring(tw_service *service, struct tw__work *work)
{
	tw_add_relaxed(&service->phase.end, 1); /* CLOSE1: comes before, by WORK1 and WORK3 */
	work->next = tw_load_relaxed(&service->works->stack);
	while (!tw_cas_seq_cst(&service->works->stack, &work->next, work)) { /* WORK1, WORK2 */
	}
	if (tw_load_seq_cst(&service->gate.word) & TW__GATE_PARKED) /* WORK2 */
		tw__gate_ring(&service->gate);
	tw__end_may_come(service);
}
