/*
 * Sweeping: dropping the entries that cancelled timers leave in the wheel (G11).
 *
 * When the dead may outnumber the live, a sweep goes through all buckets, a part in each turn
 * (G12). The words' lines belong to the cores that cancel and schedule, and each look takes one
 * away. So while a sweep may come, drains write the latest generation of each slot down, in an
 * array of the driver's own (drain.c), and the sweep drops the entries of earlier generations. If
 * that has left too many, the next sweep reads the words.
 *
 * Entries of ended timers also leave the chunks that wait in outboxes.
 */
#include "wheel/core/service.h"
#include "wheel/core/wake.h"
#include "wheel/driver/driver.h"
#include "wheel/driver/sweep.h"
#include "wheel/timer/cancel.h"

enum { SWEEP_STEP = 4096 }; /* entries swept in a turn, at least */

static struct tw__dead count_dead(tw_service *service)
{
	return tw__count_dead(service, service->driver->wheel.entries);
}

bool tw__sweep_wanted(tw_service *service)
{
	TW_ASSERT_DRIVER(service);
	struct tw__dead dead = count_dead(service);
	service->driver->sweep.writes_down = dead.dead > dead.live / 4 + dead.allowed;
	return dead.dead > dead.live + dead.allowed;
}

static void sweep_start(tw_service *service, bool by_drained)
{
	service->driver->sweep.by_drained = by_drained;
	service->driver->sweep.drained_suffices = true;
	tw__wheel_sweep_start(&service->driver->wheel);
}

/* Looks again: cancels wake only a driver that sleeps. */
static void sweep_end(tw_service *service)
{
	struct tw__dead dead = count_dead(service);
	if (service->driver->sweep.by_drained)
		service->driver->sweep.drained_suffices = dead.dead <= dead.live / 2 + dead.allowed;
	bool wanted = tw__sweep_wanted(service);
	/* those that a sweep by words has left stand in young lanes */
	service->driver->drains_young = wanted && !service->driver->sweep.by_drained;
	if (wanted)
		sweep_start(service, service->driver->sweep.drained_suffices);
}

void tw__sweep(tw_service *service, uint64_t drained, bool look)
{
	TW_ASSERT_DRIVER(service);
	if (!tw__wheel_sweeping(&service->driver->wheel)) {
		if (!look || !tw__sweep_wanted(service))
			return;
		sweep_start(service, service->driver->sweep.drained_suffices);
	}
	if (!tw__wheel_sweep(&service->driver->wheel,
			     /* more where more comes in, to get ahead of the cancels */
			     SWEEP_STEP + service->driver->wheel.entries / 256 + 2 * drained))
		sweep_end(service);
}

void tw__sweep_all(tw_service *service)
{
	TW_ASSERT_DRIVER(service);
	struct tw__wheel *wheel = &service->driver->wheel;
	if (service->driver->sweep.by_drained && tw__wheel_sweeping(wheel))
		tw__wheel_sweep(wheel, UINT64_MAX);
	if (!tw__wheel_sweeping(wheel))
		sweep_start(service, false);
	tw__wheel_sweep(wheel, UINT64_MAX);
	service->driver->sweep.drained_suffices = false;
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
