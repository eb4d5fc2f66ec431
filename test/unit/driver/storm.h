/* Storms: very many timers, whose memory is to go back. */
#ifndef TEST_UNIT_DRIVER_STORM_H
#define TEST_UNIT_DRIVER_STORM_H

#include "wheel/core/service.h"
#include "wheel/driver/driver.h"
#include "test/support/big.h"
#include "test/support/rig_suite.h"

#define MIB INT64_C(1048576)

static inline void ignore(void *arg)
{
	(void)arg;
}

static inline int64_t held_bytes(const tw_service *service)
{
	return (int64_t)stats_of((tw_service *)(uintptr_t)service).memory_bytes;
}

static inline void cancel_between(tw_service *service, const tw_timer *timers, size_t from,
				  size_t end)
{
	for (size_t i = from; i < end; i++)
		expect_eq(tw_cancel(service, timers[i]), TW_CANCELLED);
}

/* Each handle of a timer that has ended is known to be stale, whatever became of its memory. */
static inline void expect_all_gone(const tw_timer *timers, size_t count)
{
	for (size_t i = 0; i < count; i += 997)
		expect_eq(tw_cancel(rig.service, timers[i]), TW_GONE);
}

static inline void tick(int ticks)
{
	while (ticks-- > 0)
		rig_advance(&rig, MS);
}

#endif
