/*
 * After a storm, memory goes back to the system (G11): what free slots have, chunks of the wheel,
 * segments of lanes.
 *
 * A purge begins when more than twice the need, and a constant, has been held for a second. It ends
 * at one and a half times the need. The driver purges a small step in each poll, and ticks until it
 * is done; a poll with traffic puts the rest off. madvise and munmap do not allocate, and their
 * failure changes nothing.
 */
#include "wheel/driver/purge.h"

#include "wheel/core/service.h"
#include "wheel/driver/driver.h"

enum { SEGMENTS_A_STEP = 16, SEGMENTS_KEPT = 64 };

#define PATIENCE_NS UINT64_C(1000000000)

/* So much later a sleeping driver is woken for it (G9). */
#define PURGE_ASLEEP_NS UINT64_C(10000000000)

static bool holds_many(const struct tw__lane *lane)
{
	return tw__lane_segments(lane) > 2 * tw__lane_needs(lane) + SEGMENTS_KEPT;
}

static bool much_is_held(tw_service *service)
{
	for (struct tw__lane *lane = tw__queue_first(&service->queue); lane; lane = lane->next)
		if (holds_many(lane) || holds_many(tw__young_of(lane)))
			return true;
	return tw__depot_has_surplus(&service->slots.depot, 2) ||
	       tw__depot_has_surplus(&service->driver->wheel.chunks, 2);
}

/* True: there is more. */
static bool purge_step(tw_service *service)
{
	unsigned left = SEGMENTS_A_STEP;
	for (struct tw__lane *lane = tw__queue_first(&service->queue); lane && left;
	     lane = lane->next) {
		left -= tw__lane_purge(lane, left);
		left -= tw__lane_purge(tw__young_of(lane), left);
	}
	bool more = left == 0;
	more |= tw__slots_purge(&service->slots);
	more |= tw__depot_purge(&service->driver->wheel.chunks);
	return more;
}

bool tw__purging(const tw_service *service)
{
	uint64_t begin_ns = service->driver->purge_ns;
	return begin_ns && service->driver->last_now_ns >= begin_ns;
}

void tw__purge_look(tw_service *service)
{
	TW_ASSERT_DRIVER(service);
	if (tw__purging(service))
		return;
	if (!much_is_held(service))
		service->driver->purge_ns = 0;
	else if (!service->driver->purge_ns)
		service->driver->purge_ns = tw__driver_now(service) + PATIENCE_NS;
}

tw_cold void tw__purge(tw_service *service, bool look, bool busy)
{
	TW_ASSERT_DRIVER(service);
	if (tw_likely(!tw__purging(service))) {
		if (look)
			tw__purge_look(service);
	} else if (busy) {
		service->driver->purge_ns = service->driver->last_now_ns + PATIENCE_NS;
	} else if (!purge_step(service)) {
		service->driver->purge_ns = 0;
	}
}

uint64_t tw__purge_wake_by(const tw_service *service, uint64_t deadline_ns)
{
	uint64_t wake_ns = service->driver->purge_ns + PURGE_ASLEEP_NS;
	bool waits = service->driver->purge_ns && !tw__purging(service);
	return waits && wake_ns < deadline_ns ? wake_ns : deadline_ns;
}
