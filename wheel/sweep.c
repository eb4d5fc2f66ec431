/*
 * Sweeping: getting rid of the entries that cancelled timers leave in the wheel (G11).
 *
 * When the dead may outnumber the live, a sweep goes through all buckets, a part in each turn (G12). To ask the control word of
 * each entry would be dear: the words' lines belong to the cores that cancel and schedule, and each look takes one away. So a
 * sweep begins with a **census**: it streams once through the words, and notes for each slot the generation it has reached,
 * in a private array. An entry of an earlier generation is dead, for good; so a census need not be of this moment. What dies
 * after it is met by the next sweep, or in its bucket. With more slots than a core's cache holds a census saves nothing: then
 * the words are asked.
 *
 * drain.c too writes down what slots have reached, where entries are superseded by later ones.
 */
#include "wheel/core.h"

enum {
	SWEEP_STEP = 4096,      /* entries swept in a turn, at least */
	CENSUS_STEP = 16384,    /* slots counted in a turn, at least */
	CENSUS_SLOTS = 1 << 18, /* with more in use there is no census */
	ALLOWANCE = 4096 /* dead entries that each producer may leave behind, beside as many as there are live timers */
};

static uint64_t live_timers(tw_service *service, uint64_t *producers)
{
	uint64_t live =
	    -tw_load_relaxed(&service->cancelled_without_lane) - tw_load_relaxed(&service->dropped_without_lane);
	*producers = 0;
	for (struct tw__lane *lane = tw__queue_first(&service->queue); lane; lane = lane->next, ++*producers) {
		struct tw__local *local = (struct tw__local *)lane;
		live += tw_load_relaxed(&local->scheduled) - tw_load_relaxed(&local->fired) -
			tw_load_relaxed(&local->cancelled) - tw_load_relaxed(&local->dropped) -
			tw_load_relaxed(&local->late_dropped);
	}
	return (int64_t)live > 0 ? live : 0;
}

static bool wanted(tw_service *service)
{
	uint64_t producers;
	if (service->wheel.entries <= ALLOWANCE)
		return false;
	uint64_t live = live_timers(service, &producers);
	return service->wheel.entries > 2 * live + ALLOWANCE * producers;
}

/* Counts on for at most `budget` slots, and starts the sweep when all are counted. */
static void take_census(tw_service *service, uint64_t budget)
{
	struct tw__slots *slots = &service->slots;
	uint32_t end = tw_load_relaxed(&slots->fresh),
		 slot = service->census; /* slots taken since have no dead entries yet */
	for (; slot < end && budget > 0; slot++, budget--) {
		/* Relaxed: a generation once seen is never unseen, and nothing is read on the strength of it. */
		uint32_t generation = tw__word_generation(tw_load_relaxed(&slots->words[slot]));
		if (generation > slots->reached[slot]) /* drain.c may know better, through a lane that was read since */
			slots->reached[slot] = generation;
	}
	service->census = slot;
	if (slot < end)
		return;
	service->census = 0;
	tw__wheel_sweep_start(&service->wheel);
}

static void start(tw_service *service)
{
	service->sweep_asks_words = tw_load_relaxed(&service->slots.fresh) > CENSUS_SLOTS;
	if (service->sweep_asks_words)
		tw__wheel_sweep_start(&service->wheel);
	else
		service->census = 1;
}

bool tw__sweep_under_way(const tw_service *service)
{
	return service->census || tw__wheel_sweeping(&service->wheel);
}

void tw__sweep(tw_service *service, uint64_t drained, bool look)
{
	struct tw__wheel *wheel = &service->wheel;
	if (!tw__sweep_under_way(service)) {
		if (!look || !wanted(service))
			return;
		start(service);
	}
	if (service->census)
		take_census(service,
			    CENSUS_STEP + 8 * drained); /* more where more comes in, to get ahead of the cancels */
	else
		tw__wheel_sweep(wheel, SWEEP_STEP + wheel->entries / 256 + 2 * drained);
}

void tw__sweep_all(tw_service *service)
{
	if (!tw__wheel_sweeping(&service->wheel))
		start(service);
	if (service->census)
		take_census(service, UINT64_MAX);
	tw__wheel_sweep(&service->wheel, UINT64_MAX);
}
