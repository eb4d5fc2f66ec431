/*
 * Waking the driver, and threads that wait for the end of a run or of a group's members: they sleep
 * on the finish bell.
 */
#ifndef TW_WHEEL_WAKE_H
#define TW_WHEEL_WAKE_H

#include "wheel/core/service.h"
#include "wheel/core/ticks.h"

/*
 * Whether a tick ends before a sleeping driver wakes by itself. The plan is the end of a tick, so a
 * deadline is compared as the end of its own tick: a deadline within the planned tick is not
 * earlier than the plan.
 */
static inline bool tw__is_before_plan(const tw_service *service, uint64_t tick)
{
	return tw__tick_ns(service, tick) < tw_load_relaxed(&service->gate.plan); /* GATE1 */
}

/*
 * After the push of an entry for this tick, of a timer that was moved, is armed again, or was not
 * due: wakes the driver if it sleeps longer than until that. If the timer was moved to earlier
 * between its compare-and-swap and this push, the driver may have dropped the entry of that move
 * (resolve.c): so what the word says by now counts, too.
 */
void tw__wake_if_before_plan(tw_service *service, uint64_t entry, uint64_t tick);

static inline void tw__wake_for_back(tw_service *service, uint64_t entry, uint64_t tick)
{
	if (tw_unlikely(tw__gate_look_after_push(&service->gate) & TW__GATE_PARKED))
		tw__wake_if_before_plan(service, entry, tick);
}

/* Wakes the driver if it sleeps. */
void tw__wake(tw_service *service);

/* Moves the finish bell and wakes all threads that wait for it. */
void tw__ring_finish(tw_service *service);

#endif
