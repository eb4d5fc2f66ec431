/*
 * Sweeping: dropping the entries that cancelled timers leave in the wheel (G11). When the dead may
 * outnumber the live, a sweep goes through all buckets, a part in each turn (G12), and reads the
 * word of each entry. Entries of ended timers also leave the chunks that wait in outboxes.
 */
#include "wheel/core/service.h"
#include "wheel/core/wake.h"
#include "wheel/driver/driver.h"
#include "wheel/driver/sweep.h"
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

void tw__sweep_all(tw_service *service)
{
	TW_ASSERT_DRIVER(service);
	tw__wheel_sweep_start(&service->driver->wheel);
	tw__wheel_sweep(&service->driver->wheel, UINT64_MAX);
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
	uint64_t budget = (uint64_t)n * TW__CHUNK_ENTRIES, dropped = 0;
	if (!box->compacted && box->runs.first && box->runs.first->holder_count > 0)
		box->compacted = box->runs.first; /* inline runs have begun: it stays as it is */
	tw__wheel_pack(&service->driver->wheel, &box->runs, &box->compacted, resolve_waiting, NULL,
		       &budget, &dropped);
	return (unsigned)(budget / TW__CHUNK_ENTRIES);
}
