/*
 * Sweeping: dropping the entries that cancelled timers leave in the wheel (G11). When the dead may
 * outnumber the live, a sweep goes through all buckets, a part in each turn (G12), and reads the
 * word of each entry. Entries of ended timers also leave the chunks that wait in outboxes.
 *
 * After a storm, memory goes back to the system (G11): what free slots have, chunks of the wheel,
 * segments of lanes.
 *
 * A purge begins when more than twice the need, and a constant, has been held for a second. It ends
 * at one and a half times the need. The driver purges a small step in each poll, and ticks until it
 * is done; a poll with traffic puts the rest off. madvise and munmap do not allocate, and their
 * failure changes nothing.
 */
#include "wheel/core/service.h"
#include "wheel/core/wake.h"
#include "wheel/driver/driver.h"
#include "wheel/timer/cancel.h"

enum { SWEEP_STEP = 4096 }; /* entries swept in a turn, at least */

bool tw__sweep_wanted(tw_service *service)
{
	TW_ASSERT_DRIVER(service);
	struct tw__dead dead = tw__count_dead(service, service->driver->wheel.entries);
	return dead.dead > dead.live + dead.allowed;
}

void tw__sweep(tw_service *service, uint64_t drained, bool look)
{
	TW_ASSERT_DRIVER(service);
	struct tw__wheel *wheel = &service->driver->wheel;
	if (!tw__wheel_sweeping(wheel) && !(look && tw__sweep_wanted(service)))
		return;
	tw__wheel_sweep_start(wheel);
	/* more where more comes in, to get ahead of the cancels */
	if (tw__wheel_sweep(wheel, SWEEP_STEP + wheel->entries / 256 + 2 * drained))
		return;
	/* looks again: cancels wake only a sleeper. What is dead now is in young lanes */
	service->driver->drains_young = tw__sweep_wanted(service);
	if (service->driver->drains_young)
		tw__wheel_sweep_start(wheel);
}

/* An entry whose timer is not armed is dead: an arm brings another one. */
static void resolve_waiting(void *context, enum tw__resolve_for what_for,
			    const struct tw__place *place, const tw__wheel_entry *entries,
			    unsigned n, uint64_t *due_ticks)
{
	tw_service *service = context;
	uint64_t word;
	(void)what_for, (void)place;
	for (unsigned i = 0; i < n; i++)
		due_ticks[i] =
		    tw__entry_is_armed(&service->slots, entries[i], &word) ? 0 : TW__TICK_DEAD;
}

unsigned tw__outbox_compact(tw_service *service, struct tw__outbox *box, unsigned n)
{
	TW_ASSERT_DRIVER(service);
	const struct tw__place anywhere = {.high = TW__TICK_DEAD};
	uint64_t budget = (uint64_t)n * TW__CHUNK_ENTRIES, dropped = 0;
	if (!box->compacted && box->runs.first && box->runs.first->holder_count > 0)
		box->compacted = box->runs.first; /* inline runs have begun: it stays as it is */
	tw__wheel_pack(&service->driver->wheel, &box->runs, &box->compacted, resolve_waiting,
		       &anywhere, &budget, &dropped);
	return (unsigned)(budget / TW__CHUNK_ENTRIES);
}

/* ---------------------------------------------------------------------- memory */

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

/* Whether there is much to give. */
static void purge_look(tw_service *service)
{
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
	if (look)
		purge_look(service);
	if (tw_likely(!tw__purging(service)))
		return;
	if (busy)
		service->driver->purge_ns = service->driver->last_now_ns + PATIENCE_NS;
	else if (!purge_step(service))
		service->driver->purge_ns = 0;
}

uint64_t tw__purge_wake_by(tw_service *service, uint64_t deadline_ns)
{
	purge_look(service);
	bool waits = service->driver->purge_ns && !tw__purging(service);
	return waits ? tw__earlier(service->driver->purge_ns + PURGE_ASLEEP_NS, deadline_ns)
		     : deadline_ns;
}
