/* Below the calls that schedule, reset and end timers, which use it. */
#include "wheel/core/wake.h"

#include <limits.h>

void tw__wake(tw_service *service)
{
	if (tw__gate_look_after_push(&service->gate) & TW__GATE_PARKED)
		tw__gate_ring(&service->gate);
}

/*
 * The earlier one of `tick` and the deadline of the entry's timer, if that is armed. A driver that
 * has dropped the entry of a move, and has not seen the caller's push, has published a word and
 * passed its barrier in between (GATE2): then this look sees the move (WORD4).
 */
static uint64_t earliest_tick(tw_service *service, uint64_t entry, uint64_t tick)
{
	uint32_t slot = tw__entry_slot(entry);
	uint64_t cursor = tw_load_relaxed(&service->gate.cursor), asked;
	uint64_t word = tw_load_acquire(&service->slots.words[slot]); /* WORD4 */
	while ((word ^ entry) >> TW__GENERATION_SHIFT == 0 && tw__word_armed(word))
		if (tw__deadline_read(&service->slots, slot, &word, cursor, &asked))
			return asked < tick ? asked : tick;
	return tick;
}

void tw__wake_if_before_plan(tw_service *service, uint64_t entry, uint64_t tick)
{
	if (tw__is_before_plan(service, earliest_tick(service, entry, tick)))
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
