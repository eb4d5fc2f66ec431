/*
 * Waking the driver, by any thread. Below the calls that schedule and reset timers, which use it.
 */
#include "wheel/core/service.h"
#include "wheel/core/wake.h"

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
