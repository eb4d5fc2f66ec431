/*
 * After a storm, memory goes back to the system (G11): words and records of free slots,
 * extension records, chunks of the wheel, segments of lanes.
 *
 * Hysteresis: a purge begins when more than twice the need, and a constant, has been held for a
 * second. It ends at one and a half times the need. So storms that return within a second or two
 * find their memory in place. Only idle blocks count: memory in which something lives cannot go
 * back, and nobody tries.
 *
 * The driver purges, a small step in each poll, and ticks until it is done. A poll with traffic
 * puts the rest off.
 *
 * madvise and munmap are allowed here: neither allocates, and a failure changes nothing. Like a
 * page fault they wait only for the system's own locks. The depot's lock is only tried.
 */
#include "wheel/driver/purge.h"

#include "wheel/driver/driver.h"

enum {
	BLOCKS_A_STEP = 4,
	SEGMENTS_A_STEP = 16,
	SLOTS_KEPT = 16384,
	EXTS_KEPT = 4096,
	CHUNKS_KEPT = 1024,
	SEGMENTS_KEPT = 64
};

/* How long so much must have been held without need. */
#define PATIENCE_NS UINT64_C(1000000000)

/*
 * Polls that come anyway give memory back a second after a storm. A driver that sleeps is woken for
 * it only so much later (G9).
 */
#define PURGE_ASLEEP_NS UINT64_C(10000000000)

/* Some of it can go back, and more is held than `times` times what is enough. */
static bool has_surplus(const struct tw__depot *depot, uint32_t kept, unsigned times)
{
	uint64_t used = tw__depot_used(depot);
	return tw_load_relaxed(&depot->idle) &&
	       tw__depot_held(depot) > times * (used + used / 2 + kept);
}

static bool much_is_held(tw_service *service)
{
	for (struct tw__lane *lane = tw__queue_first(&service->queue); lane; lane = lane->next)
		if (tw__lane_segments(lane) > 2 * tw__lane_needs(lane) + SEGMENTS_KEPT)
			return true;
	return has_surplus(&service->slots.depot, SLOTS_KEPT, 2) ||
	       has_surplus(&service->slots.ext_depot, EXTS_KEPT, 2) ||
	       has_surplus(&service->driver->wheel.chunks, CHUNKS_KEPT, 2);
}

/*
 * The lock of slots and extension records is only tried. The system calls are made under it, so
 * that no thread takes an index while its memory goes. A few microseconds. True: there is more.
 */
static bool purge_depot(tw_service *service, struct tw__depot *depot, uint32_t kept)
{
	uint32_t block;
	if (!has_surplus(depot, kept, 1))
		return false;
	if (pthread_mutex_trylock(&service->slots.lock))
		return true;
	for (int i = 0;
	     i < BLOCKS_A_STEP && has_surplus(depot, kept, 1) && tw__depot_next_idle(depot, &block);
	     i++) {
		if (depot == &service->slots.depot)
			tw__slots_purge(&service->slots, block);
		else
			tw__depot_purge(depot, block);
	}
	pthread_mutex_unlock(&service->slots.lock);
	return has_surplus(depot, kept, 1);
}

/* True: there is more. */
static bool purge_step(tw_service *service)
{
	unsigned left = SEGMENTS_A_STEP;
	for (struct tw__lane *lane = tw__queue_first(&service->queue); lane && left;
	     lane = lane->next)
		left -= tw__lane_purge(lane, left);
	bool more = left == 0;
	more |= purge_depot(service, &service->slots.depot, SLOTS_KEPT);
	more |= purge_depot(service, &service->slots.ext_depot, EXTS_KEPT);
	more |= purge_depot(service, &service->driver->wheel.chunks, CHUNKS_KEPT);
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

void tw__purge(tw_service *service, bool look, bool busy)
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
