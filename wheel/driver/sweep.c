/*
 * Sweeping: getting rid of the entries that cancelled timers leave in the wheel (G11).
 *
 * When the dead may outnumber the live, a sweep goes through all buckets, a part in each turn
 * (G12). To read the control word of each entry would be dear: the words' lines belong to the cores
 * that cancel and schedule, and each look takes one away. So the driver keeps a private array of
 * the latest generation that it knows of each slot: an entry of an earlier generation is dead. Two
 * sources fill the array:
 *   drains     Where slots are used again and again, as under load, the entry of the next timer
 *              tells. Drains write it down while enough are dead for a sweep to come (drain.c).
 *   mark pass  If a timer was cancelled and its slot was not used again, only the word knows. A
 *              mark pass streams once through the words, before the sweep. It need not be exact:
 *              what dies after it is met by the next sweep, or in its bucket. With more slots
 *              than a core's cache holds a mark pass saves nothing: then the words are read one
 *              by one.
 * A sweep by drains that has left too much is followed by one of the other kind.
 */
#include "wheel/core/service.h"
#include "wheel/core/live.h"
#include "wheel/driver/driver.h"
#include "wheel/timer/end.h"

enum {
	SWEEP_STEP = 4096,    /* entries swept in a turn, at least */
	MARK_STEP = 16384,    /* slots counted in a turn, at least */
	MARK_SLOTS = 1 << 18, /* with more in use there is no mark_pass */
	/*
	 * Dead entries that each producer may leave behind, beside as many as there are live
	 * timers; with those that have not rung yet, 4096 (G11).
	 */
	ALLOWANCE = 4096 - TW__CANCELS_PER_WAKE
};

/*
 * Entries beyond one for each live timer: about right while others work. *live, *allowed: this many
 * dead entries beside the live ones need no sweep.
 */
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
static void make_mark_pass(tw_service *service, uint64_t budget)
{
	struct tw__slots *slots = &service->slots;
	tw_store_relaxed(&slots->written.latest_generations, true);
	uint32_t end = tw_load_relaxed(&slots->depot.fresh),
		 /* slots taken since have no dead entries yet */
	    slot = service->driver->sweep.mark_pass;
	for (; slot < end && budget > 0; slot++, budget--) {
		/*
		 * Relaxed: a generation once seen is never unseen, and nothing is read on the
		 * strength of it.
		 */
		uint32_t generation = tw__word_generation(tw_load_relaxed(&slots->words[slot]));
		/* drain.c may know better, through a lane that was read since */
		if (generation > slots->latest_generations[slot])
			slots->latest_generations[slot] = generation;
	}
	service->driver->sweep.mark_pass = slot;
	if (slot < end)
		return;
	service->driver->sweep.mark_pass = 0;
	tw__wheel_sweep_start(&service->driver->wheel);
}

static void sweep_start(tw_service *service, bool by_drained)
{
	bool by_words = tw_load_relaxed(&service->slots.depot.fresh) > MARK_SLOTS;
	service->driver->sweep.by = by_drained ? TW__SWEEP_BY_DRAINED
				    : by_words ? TW__SWEEP_BY_WORDS
					       : TW__SWEEP_BY_MARKS;
	service->driver->sweep.drained_suffices = true;
	if (service->driver->sweep.by == TW__SWEEP_BY_MARKS)
		service->driver->sweep.mark_pass = 1;
	else
		tw__wheel_sweep_start(&service->driver->wheel);
}

bool tw__sweep_under_way(const tw_service *service)
{
	return service->driver->sweep.mark_pass || tw__wheel_sweeping(&service->driver->wheel);
}

/*
 * Looks again: cancels wake only a driver that sleeps,
 * and only one cancel of many does.
 */
static void sweep_end(tw_service *service)
{
	uint64_t live, allowed, dead = count_dead(service, &live, &allowed);
	if (service->driver->sweep.by == TW__SWEEP_BY_DRAINED)
		service->driver->sweep.drained_suffices = dead <= live / 2 + allowed;
	if (tw__sweep_wanted(service))
		sweep_start(service, service->driver->sweep.drained_suffices);
}

void tw__sweep(tw_service *service, uint64_t drained, bool look)
{
	TW_ASSERT_DRIVER(service);
	if (!tw__sweep_under_way(service)) {
		if (!look || !tw__sweep_wanted(service))
			return;
		sweep_start(service, service->driver->sweep.drained_suffices);
	}
	if (service->driver->sweep.mark_pass)
		make_mark_pass(service,
			       /* more where more comes in, to get ahead of the cancels */
			       MARK_STEP + 8 * drained);
	else if (!tw__wheel_sweep(&service->driver->wheel,
				  SWEEP_STEP + service->driver->wheel.entries / 256 + 2 * drained))
		sweep_end(service);
}

void tw__sweep_all(tw_service *service)
{
	TW_ASSERT_DRIVER(service);
	if (service->driver->sweep.by == TW__SWEEP_BY_DRAINED && tw__sweep_under_way(service))
		tw__wheel_sweep(&service->driver->wheel, UINT64_MAX);
	if (!tw__sweep_under_way(service))
		sweep_start(service, false);
	if (service->driver->sweep.mark_pass)
		make_mark_pass(service, UINT64_MAX);
	tw__wheel_sweep(&service->driver->wheel, UINT64_MAX);
	service->driver->sweep.drained_suffices = false;
}
