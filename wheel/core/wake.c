/* Below the calls that schedule, reset and end timers, which use it. */
#include "wheel/core/wake.h"

#include <limits.h>

void tw__wake(tw_service *service)
{
	if (tw__gate_look_after_push(&service->gate) & TW__GATE_PARKED)
		tw__gate_ring(&service->gate);
}

void tw__wake_for(tw_service *service, uint64_t deadline_ns)
{
	uint64_t word = tw__gate_look_after_push(&service->gate);
	if (tw_unlikely(word & TW__GATE_PARKED) &&
	    deadline_ns < tw_load_relaxed(&service->gate.plan))
		tw__gate_ring(&service->gate);
}

void tw__ring_finish(tw_service *service)
{
	tw_add_seq_cst(&service->finish_bell, 1); /* RUN5 */
	tw__futex_wake(&service->finish_bell, INT_MAX);
}
