/* The driver's reading of the clock: never earlier than the last one. */
#include "wheel/core/service.h"

uint64_t tw__driver_now(tw_service *service)
{
	uint64_t now_ns = service->clock->ops->now(service->clock);
	if (tw_unlikely(now_ns < service->last_reading_ns))
		tw_bump(&service->clock_steps, 1);
	service->last_reading_ns = now_ns;
	if (now_ns > service->last_now_ns)
		service->last_now_ns = now_ns;
	return service->last_now_ns;
}
