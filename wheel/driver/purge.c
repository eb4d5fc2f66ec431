/*
 * After a storm, memory goes back to the system (G11): words and records of free slots,
 * extension records, chunks of the wheel, segments of lanes.
 *
 * Hysteresis: a purge begins when more than twice the need, and a constant, has been held for a
 * second. It ends at one and a half times the need. So storms that return within a second or two
 * find their memory in place.
 *
 * The driver purges, a small step in each poll, and ticks until the pass is done. A poll with
 * traffic breaks it off. What is freed during a pass may lie behind it. So the driver looks again
 * before it sleeps, after a pass too, and wakes up for another pass. Memory in which something
 * lives cannot go back: there is no other pass before more was freed, or more is held.
 *
 * madvise and munmap are allowed here: neither allocates, and a failure changes nothing. Like a
 * page fault they wait only for the system's own locks. The depot's lock is only tried.
 */
#include "wheel/driver/purge.h"

#include <string.h>

#include "wheel/driver/driver.h"

enum {
	BLOCKS_A_STEP = 4,
	LOOKS_A_STEP = 256, /* blocks looked at */
	SEGMENTS_A_STEP = 16,
	SLOTS_KEPT = 16384,
	EXTS_KEPT = 4096,
	CHUNKS_KEPT = 1024,
	SEGMENTS_KEPT = 64
};

/* How long so much must have been held without need. */
#define PATIENCE_NS UINT64_C(1000000000)

void tw__purge_init(tw_service *service)
{
	const struct tw__purge_part parts[TW__PURGE_PARTS] = {
	    {&service->slots.depot, SLOTS_KEPT, 0, UINT64_MAX, 0},
	    {&service->slots.ext_depot, EXTS_KEPT, 0, UINT64_MAX, 0},
	    {&service->driver->wheel.chunks, CHUNKS_KEPT, 0, UINT64_MAX, 0},
	};
	memcpy(service->driver->purge.parts, parts, sizeof parts);
}

/* More is held than `times` times what is enough. A purge begins at 2 and ends at 1. */
static bool has_surplus(const struct tw__purge_part *part, unsigned times)
{
	uint64_t used = tw__depot_used(part->depot);
	return tw__depot_held(part->depot) > times * (used + used / 2 + part->kept);
}

/* A pass is likely to give something back. */
static bool wants_pass(const struct tw__purge_part *part)
{
	return has_surplus(part, 2) && (tw__depot_used(part->depot) < part->used_before ||
					tw__depot_held(part->depot) > part->held_after);
}

static bool much_is_held(tw_service *service)
{
	for (struct tw__lane *lane = tw__queue_first(&service->queue); lane; lane = lane->next)
		if (tw__lane_segments(lane) > 2 * tw__lane_needs(lane) + SEGMENTS_KEPT)
			return true;
	const struct tw__purge_part *part = service->driver->purge.parts;
	return wants_pass(&part[0]) || wants_pass(&part[1]) || wants_pass(&part[2]);
}

/* ------------------------------------------------------------------ one step */

/*
 * The depots of slots and extension records have a lock, which is only tried. The system call is
 * made under it, so that no thread takes an index while its memory goes. A few microseconds.
 */
static bool purge_block(tw_service *service, struct tw__depot *depot, uint32_t block)
{
	if (pthread_mutex_trylock(&service->slots.lock))
		return false;
	TW_ASSERT_LOCKED(&service->slots.lock);
	bool given = depot == &service->slots.depot ? tw__slots_purge(&service->slots, block)
						    : tw__depot_purge(depot, block);
	pthread_mutex_unlock(&service->slots.lock);
	return given;
}

/* From the top down to 0. False: enough is given. */
static bool purge_part(tw_service *service, struct tw__purge_part *part)
{
	int given = 0;
	for (int looks = LOOKS_A_STEP; looks > 0 && part->next && given < BLOCKS_A_STEP; looks--) {
		if (!has_surplus(part, 1))
			return false;
		given += purge_block(service, part->depot, --part->next);
	}
	return part->next > 0;
}

static bool purge_segments(tw_service *service)
{
	unsigned left = SEGMENTS_A_STEP;
	for (struct tw__lane *lane = tw__queue_first(&service->queue); lane && left;
	     lane = lane->next)
		left -= tw__lane_purge(lane, left);
	return left == 0;
}

static void purge_start(tw_service *service)
{
	service->driver->purge.purging = true;
	service->driver->purge.begin_ns = 0;
	for (unsigned i = 0; i < TW__PURGE_PARTS; i++) {
		struct tw__purge_part *part = &service->driver->purge.parts[i];
		part->next = tw_load_relaxed(&part->depot->fresh) >> part->depot->block_shift;
		part->used_before = tw__depot_used(part->depot);
	}
}

static void purge_end(tw_service *service)
{
	service->driver->purge.purging = false;
	for (unsigned i = 0; i < TW__PURGE_PARTS; i++) {
		struct tw__purge_part *part = &service->driver->purge.parts[i];
		part->held_after = tw__depot_held(part->depot);
	}
}

static void purge_step(tw_service *service)
{
	bool more = purge_segments(service);
	for (unsigned i = 0; i < TW__PURGE_PARTS; i++)
		more |= purge_part(service, &service->driver->purge.parts[i]);
	if (!more)
		purge_end(service);
}

/*
 * Broken off, to begin anew after a while: the tick thread may go to sleep without a further look.
 */
static void purge_break_off(tw_service *service)
{
	service->driver->purge.purging = false;
	for (unsigned i = 0; i < TW__PURGE_PARTS; i++)
		service->driver->purge.parts[i].used_before = UINT64_MAX;
	service->driver->purge.begin_ns = service->driver->last_now_ns + PATIENCE_NS;
}

void tw__purge_look(tw_service *service)
{
	TW_ASSERT_DRIVER(service);
	struct tw__purge *purge = &service->driver->purge;
	if (purge->purging)
		return;
	if (!much_is_held(service))
		purge->begin_ns = 0;
	else if (!purge->begin_ns)
		purge->begin_ns = tw__driver_now(service) + PATIENCE_NS;
}

void tw__purge_step(tw_service *service, bool look, bool busy)
{
	TW_ASSERT_DRIVER(service);
	struct tw__purge *purge = &service->driver->purge;
	if (tw_unlikely(purge->purging) && busy)
		purge_break_off(service);
	else if (tw_unlikely(purge->purging))
		purge_step(service);
	else if (look || tw__purge_is_due(service))
		tw__purge_look(service);
	if (tw_unlikely(tw__purge_is_due(service)) && !purge->purging)
		purge_start(service);
}

bool tw__purge_is_due(const tw_service *service)
{
	uint64_t begin_ns = service->driver->purge.begin_ns;
	return begin_ns && service->driver->last_now_ns >= begin_ns;
}

/*
 * Polls that come anyway give memory back a second after a storm. A driver that sleeps is woken for
 * it only so much later (G9).
 */
#define PURGE_ASLEEP_NS UINT64_C(10000000000)

uint64_t tw__purge_wake_by(const tw_service *service, uint64_t deadline_ns)
{
	uint64_t wake_ns = service->driver->purge.begin_ns + PURGE_ASLEEP_NS;
	return service->driver->purge.begin_ns && wake_ns < deadline_ns ? wake_ns : deadline_ns;
}
