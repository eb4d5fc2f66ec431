/* The driver's reading of the clock: never earlier than the last one. */
#include "wheel/core/service.h"
#include "wheel/driver/driver.h"
#include "wheel/driver/now.h"

uint64_t tw__driver_now(tw_service *service)
{
	uint64_t now_ns = service->clock->ops->now(service->clock);
	if (tw_unlikely(now_ns < service->driver->last_reading_ns))
		tw_bump(&service->driver->counters.clock_steps, 1);
	service->driver->last_reading_ns = now_ns;
	if (now_ns > service->driver->last_now_ns)
		service->driver->last_now_ns = now_ns;
	return service->driver->last_now_ns;
}
