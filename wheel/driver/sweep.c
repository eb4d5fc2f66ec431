/*
 * Sweeping: getting rid of the entries that cancelled timers leave in the wheel (G11).
 *
 * When the dead may outnumber the live, a sweep goes through all buckets, a part in each turn
 * (G12), and asks the words.
 */
#include "wheel/core/service.h"
#include "wheel/core/local.h"
#include "wheel/driver/driver.h"
#include "wheel/driver/sweep.h"
#include "wheel/timer/end.h"

enum {
	SWEEP_STEP = 4096, /* entries swept in a turn, at least */
	/*
	 * Dead entries that each producer may leave behind, beside as many as there are live
	 * timers; with those that have not rung yet, 4096 (G11).
	 */
	ALLOWANCE = 4096 - TW__CANCELS_PER_WAKE
};

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

bool tw__sweep_wanted(tw_service *service)
{
	TW_ASSERT_DRIVER(service);
	uint64_t entries = service->driver->wheel.entries, producers;
	if (entries <= ALLOWANCE)
		return false;
	uint64_t live = tw__live_timers(service, &producers);
	return entries > 2 * live + ALLOWANCE * producers;
}

void tw__sweep(tw_service *service, uint64_t drained, bool look)
{
	TW_ASSERT_DRIVER(service);
	struct tw__wheel *wheel = &service->driver->wheel;
	if (!tw__wheel_sweeping(wheel)) {
		if (!look || !tw__sweep_wanted(service))
			return;
		tw__wheel_sweep_start(wheel);
	}
	/* more where more comes in, to get ahead of the cancels */
	uint64_t budget = SWEEP_STEP + wheel->entries / 256 + 2 * drained;
	/*
	 * Looks again at its end: cancels wake only a driver that sleeps, and only one cancel of
	 * many does.
	 */
	if (!tw__wheel_sweep(wheel, budget) && tw__sweep_wanted(service))
		tw__wheel_sweep_start(wheel);
}

void tw__sweep_all(tw_service *service)
{
	TW_ASSERT_DRIVER(service);
	tw__wheel_sweep_start(&service->driver->wheel);
	tw__wheel_sweep(&service->driver->wheel, UINT64_MAX);
}
