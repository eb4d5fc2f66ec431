/*
 * Sweeping: getting rid of the entries that cancelled timers leave in the wheel (G11).
 *
 * When the dead may outnumber the live, a sweep goes through all buckets, a part in each turn (G12). To ask the control word of
 * each entry would be dear: the words' lines belong to the cores that cancel and schedule, and each look takes one away. So the
 * driver goes by a private array of the generations that slots have **reached**: an entry of an earlier one is dead, for good. It learns of
 * them in two ways.
 *   drained    Where slots are used again and again, as they are under load, the entry of the next timer tells. Drains write it down while there
 *              are dead enough for a sweep to come (drain.c).
 *   a census   What was cancelled, and its slot not used again, only the words know: a census streams once through them, before the sweep. It
 *              need not be of this moment: what dies after it is met by the next sweep, or in its bucket. With more slots than a core's cache
 *              holds a census saves nothing: then the words are asked one by one.
 *   words      Entries that are not current though their generation is: of timers that were moved to earlier. Only the words tell.
 * A sweep that has left too much is followed by one of the next kind.
 */
#include "wheel/core/service.h"
#include "wheel/core/live.h"
#include "wheel/driver/driver.h"
#include "wheel/timer/end.h"

enum {
	SWEEP_STEP = 4096,      /* entries swept in a turn, at least */
	CENSUS_STEP = 16384,    /* slots counted in a turn, at least */
	CENSUS_SLOTS = 1 << 18, /* with more in use there is no census */
	/* Dead entries that each producer may leave behind, beside as many as there are live timers; with those that have not rung yet, 4096 (G11). */
	ALLOWANCE = 4096 - TW__CANCELS_PER_WAKE
};

/* Entries beyond one for each live timer: about right while others work. *live, *allowed: beside as many as those, so many are nobody's concern. */
static uint64_t count_dead(tw_service *service, uint64_t *live, uint64_t *allowed)
{
	uint64_t entries = service->driver->wheel.entries, producers;
	*live = tw__live_timers(service, &producers);
	*allowed = ALLOWANCE * producers;
	return entries > *live ? entries - *live : 0;
}

bool tw__sweep_wanted(tw_service *service)
{
	TW_ASSERT_DRIVER(service);
	uint64_t live = 0, allowed = 0, dead = 0;
	if (service->driver->wheel.entries > ALLOWANCE)
		dead = count_dead(service, &live, &allowed);
	service->driver->sweep.writes_down = dead > live / 4 + allowed;
	return dead > live + allowed;
}

/* Counts on for at most `budget` slots, and starts the sweep when all are counted. */
static void take_census(tw_service *service, uint64_t budget)
{
	struct tw__slots *slots = &service->slots;
	tw_store_relaxed(&slots->counted, true);
	uint32_t end = tw_load_relaxed(&slots->fresh),
		 slot = service->driver->sweep.census; /* slots taken since have no dead entries yet */
	for (; slot < end && budget > 0; slot++, budget--) {
		/* Relaxed: a generation once seen is never unseen, and nothing is read on the strength of it. */
		uint32_t generation = tw__word_generation(tw_load_relaxed(&slots->words[slot]));
		if (generation > slots->reached[slot]) /* drain.c may know better, through a lane that was read since */
			slots->reached[slot] = generation;
	}
	service->driver->sweep.census = slot;
	if (slot < end)
		return;
	service->driver->sweep.census = 0;
	tw__wheel_sweep_start(&service->driver->wheel);
}

static void start(tw_service *service, enum tw__sweep_by by)
{
	bool too_many = tw_load_relaxed(&service->slots.fresh) > CENSUS_SLOTS;
	service->driver->sweep.by = by == TW__SWEEP_BY_CENSUS && too_many ? TW__SWEEP_BY_WORDS : by;
	service->driver->sweep.next = TW__SWEEP_BY_DRAINED;
	if (service->driver->sweep.by == TW__SWEEP_BY_CENSUS)
		service->driver->sweep.census = 1;
	else
		tw__wheel_sweep_start(&service->driver->wheel);
}

bool tw__sweep_under_way(const tw_service *service)
{
	return service->driver->sweep.census || tw__wheel_sweeping(&service->driver->wheel);
}

/* Looks again: a driver that sleeps is told of cancels only while it does, and then by one of so many. */
static void end(tw_service *service)
{
	uint64_t live, allowed, dead = count_dead(service, &live, &allowed);
	if (service->driver->sweep.by != TW__SWEEP_BY_WORDS && dead > live / 2 + allowed)
		service->driver->sweep.next = service->driver->sweep.by + 1;
	if (tw__sweep_wanted(service))
		start(service, service->driver->sweep.next);
}

void tw__sweep(tw_service *service, uint64_t drained, bool look)
{
	TW_ASSERT_DRIVER(service);
	if (!tw__sweep_under_way(service)) {
		if (!look || !tw__sweep_wanted(service))
			return;
		start(service, service->driver->sweep.next);
	}
	if (service->driver->sweep.census)
		take_census(service,
			    CENSUS_STEP + 8 * drained); /* more where more comes in, to get ahead of the cancels */
	else if (!tw__wheel_sweep(&service->driver->wheel,
				  SWEEP_STEP + service->driver->wheel.entries / 256 + 2 * drained))
		end(service);
}

void tw__sweep_all(tw_service *service)
{
	TW_ASSERT_DRIVER(service);
	if (service->driver->sweep.by != TW__SWEEP_BY_WORDS) {
		service->driver->sweep.census = 0;
		tw__wheel_sweep(&service->driver->wheel, UINT64_MAX);
	}
	if (!tw__sweep_under_way(service))
		start(service, TW__SWEEP_BY_WORDS);
	tw__wheel_sweep(&service->driver->wheel, UINT64_MAX);
	service->driver->sweep.next = TW__SWEEP_BY_CENSUS;
}
