/*
 * After a storm, memory goes back to the system (G11): records and locations of free slots,
 * extension records, chunks of the wheel, segments of lanes.
 *
 * Hysteresis: a purge begins when more than twice the need, and a constant, has been held for a
 * second. It ends at one and a half times the need. So storms that return within a second or two
 * find their memory in place.
 *
 * The driver purges, a small step in each poll, and ticks until the purge is done. A poll with
 * traffic breaks it off. madvise and munmap are allowed here: neither allocates, and a failure
 * changes nothing. Like a page fault they wait only for the system's own locks. The depot's lock is
 * only tried.
 */
#include "wheel/driver/purge.h"
#include "wheel/core/live.h"
#include "wheel/driver/driver.h"
#include "wheel/slot/slots_purge.h"

#include <sys/mman.h>

enum {
	CHAINS_A_STEP = 4,
	CHUNKS_A_STEP = 256,
	BLOCKS_A_STEP = 4,
	LOOKS_A_STEP = 256, /* blocks looked at */
	SEGMENTS_A_STEP = 16,
	SLOTS_KEPT = 16384,
	OPTIONS_KEPT = 4096,
	CHUNKS_KEPT = 1024,
	SEGMENTS_KEPT = 64
};

/* How long so much must have been held without need. */
#define PATIENCE_NS UINT64_C(1000000000)

/* What is held, and what is enough: where giving ends. Twice of that is where it begins. */
struct balance {
	uint64_t held, enough;
};

static bool has_surplus(struct balance balance, unsigned times)
{
	return balance.held > times * balance.enough;
}

static struct balance of_slots(tw_service *service)
{
	const struct tw__slots *slots = &service->slots;
	uint64_t given = (uint64_t)tw_load_relaxed(&slots->purged) * TW__BLOCK,
		 live = tw__live_timers(service, NULL);
	return (struct balance){tw_load_relaxed(&slots->fresh) - given,
				live + live / 2 + SLOTS_KEPT};
}

static struct balance of_exts(tw_service *service)
{
	uint64_t live = tw_load_relaxed(&service->slots.store.live);
	uint64_t held = (uint64_t)tw_load_relaxed(&service->slots.store.held) * TW__BLOCK;
	return (struct balance){held, live + live / 2 + OPTIONS_KEPT};
}

static struct balance of_chunks(tw_service *service)
{
	const struct tw__wheel *wheel = &service->driver->wheel;
	uint64_t used = wheel->arena_used - wheel->free_chunks;
	return (struct balance){tw__wheel_chunks_held(wheel), used + used / 2 + CHUNKS_KEPT};
}

static bool much_is_held(tw_service *service)
{
	for (struct tw__lane *lane = tw__queue_first(&service->queue); lane; lane = lane->next)
		if (tw__lane_segments(lane) > 2 * tw__lane_needs(lane) + SEGMENTS_KEPT)
			return true;
	return has_surplus(of_slots(service), 2) || has_surplus(of_exts(service), 2) ||
	       has_surplus(of_chunks(service), 2);
}

/* ------------------------------------------------------------------ one step */

/* Free slots and chunks leave their lists. False: none is left there. */
static bool purge_lists(tw_service *service)
{
	bool any = tw__wheel_purge_chunks(&service->driver->wheel, CHUNKS_A_STEP) > 0;
	for (int i = 0; i < CHAINS_A_STEP && tw__slots_purge_tables(&service->slots); i++)
		any = true;
	return any;
}

static bool purge_chunks(tw_service *service)
{
	struct tw__chunk *chunks = NULL;
	for (int i = 0; i < BLOCKS_A_STEP && has_surplus(of_chunks(service), 1); i++)
		if ((chunks = tw__wheel_purge_next(&service->driver->wheel)))
			madvise(chunks, TW__PURGE_CHUNKS * sizeof *chunks, MADV_DONTNEED);
	return chunks != NULL;
}

/* Blocks of slots or of extension records, from the top down to 0. */
static bool purge_blocks(tw_service *service, uint32_t *top, struct balance of(tw_service *),
			 bool purge_block(struct tw__slots *, uint32_t))
{
	int given = 0;
	for (int looks = LOOKS_A_STEP; looks > 0 && *top != 0 && given < BLOCKS_A_STEP; looks--) {
		if (!has_surplus(of(service), 1))
			return false;
		given += purge_block(&service->slots, --*top);
	}
	return *top > 0;
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
	tw__wheel_purge_start(&service->driver->wheel);
	service->driver->purge.next_slots = tw_load_relaxed(&service->slots.fresh) / TW__BLOCK;
	service->driver->purge.next_exts = tw_load_relaxed(&service->slots.store.end);
}

/* First all lists are purged, then blocks. False: done. */
static bool purge_step(tw_service *service)
{
	bool more = purge_segments(service);
	if (purge_lists(service)) {
		purge_start(service); /* from the top again */
		return true;
	}
	more |= purge_chunks(service);
	struct tw__purge *purge = &service->driver->purge;
	more |= purge_blocks(service, &purge->next_slots, of_slots, tw__slots_purge_block);
	more |= purge_blocks(service, &purge->next_exts, of_exts, tw__exts_purge_block);
	return more;
}

/*
 * Broken off, to begin anew after a while: the tick thread may go to sleep without a further look.
 */
static void purge_break_off(tw_service *service)
{
	service->driver->purge.purging = false;
	service->driver->purge.begin_ns = service->driver->last_now_ns + PATIENCE_NS;
}

void tw__purge_step(tw_service *service, bool look, bool busy)
{
	TW_ASSERT_DRIVER(service);
	if (tw_unlikely(service->driver->purge.purging) && busy)
		purge_break_off(service);
	else if (tw_unlikely(service->driver->purge.purging))
		service->driver->purge.purging = purge_step(service);
	else if (look && !much_is_held(service))
		service->driver->purge.begin_ns = 0;
	else if (look && !service->driver->purge.begin_ns)
		service->driver->purge.begin_ns = service->driver->last_now_ns + PATIENCE_NS;
	else if (look && service->driver->last_now_ns >= service->driver->purge.begin_ns)
		purge_start(service);
}

/*
 * Polls that come anyway give memory back a second after a storm; a tick thread that sleeps is
 * woken for it only so much later (G9).
 */
#define PURGE_ASLEEP_NS UINT64_C(10000000000)

uint64_t tw__purge_wake_by(const tw_service *service, uint64_t deadline_ns)
{
	uint64_t wake_ns = service->driver->purge.begin_ns + PURGE_ASLEEP_NS;
	return service->driver->purge.begin_ns && wake_ns < deadline_ns ? wake_ns : deadline_ns;
}
