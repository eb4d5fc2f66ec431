/* How many timers live. */
#include "wheel/core/service.h"
#include "wheel/core/live.h"
#include "wheel/core/local.h"

uint64_t tw__live_timers(tw_service *service, uint64_t *producers)
{
	uint64_t count = 0, live = -tw_load_relaxed(&service->without_lane.cancelled) -
				   tw_load_relaxed(&service->without_lane.dropped);
	for (struct tw__lane *lane = tw__queue_first(&service->queue); lane; lane = lane->next) {
		struct tw__local *local = (struct tw__local *)lane;
		count += !tw_load_relaxed(&local->of_service);
		live += tw_load_relaxed(&local->magazine.scheduled) -
			tw_load_relaxed(&local->fired) -
			tw_load_relaxed(&local->magazine.cancelled) -
			tw_load_relaxed(&local->dropped) - tw_load_relaxed(&local->late_dropped);
	}
	if (producers)
		*producers = count;
	return (int64_t)live > 0 ? live : 0;
}
