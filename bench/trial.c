/*
 * Before anything is measured, each candidate is put to the proof: timers that are scheduled,
 * cancelled and moved to earlier and to later while others fire, each looked after one by one. A
 * cheap bench of a broken timer would look very good.
 */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "bench/baseline.h"
#include "bench/measure.h"
#include "bench/random.h"
#include "bench/recorder.h"
#include "bench/workload.h"

enum { MOST_TIMERS = 20000, CHANGES_PER_MS = 100, ROUNDS_MS = 150 };

static uint32_t timers; /* fewer where the system's limits allow no more */

#define FIRST_NS (50 * MILLISECOND_NS)
#define LAST_NS (200 * MILLISECOND_NS)
#define PATIENCE_NS (10 * SECOND_NS)

enum fate { WAITING = 0, RAN = 1, CANCELLED = 2 };

/* A callback may not start before this; lowered before a timer is moved, raised after. */
static _Atomic uint64_t not_before_ns[MOST_TIMERS];
static _Atomic uint8_t fates[MOST_TIMERS];

static void note_run(void *arg)
{
	uint64_t at = now_ns();
	size_t slot = (size_t)(uintptr_t)arg;
	struct recorder *mine = recorder_mine();
	mine->wrong += atomic_exchange(&fates[slot], RAN) != WAITING;
	recorder_note(mine, atomic_load(&not_before_ns[slot]), at);
}

static uint64_t turn(const struct order *order, void *self)
{
	uint64_t now = now_ns();
	if (order->candidate->turn)
		order->candidate->turn(self, 0, now);
	return now;
}

static void schedule_one(const struct order *order, void *self, uint32_t slot, uint64_t delay,
			 struct outcome *outcome)
{
	atomic_store(&not_before_ns[slot], turn(order, self) + delay);
	int answer =
	    order->candidate->schedule(self, 0, slot, delay, note_run, (void *)(uintptr_t)slot);
	if (answer != 0)
		outcome_fail(outcome, "schedule refused: %s", strerror(-answer));
}

/* True: the timer will not run. */
static bool cancel_one(const struct order *order, void *self, uint32_t slot,
		       struct outcome *outcome)
{
	if (!order->candidate->cancel(self, slot))
		return false;
	if (atomic_exchange(&fates[slot], CANCELLED) != WAITING)
		outcome_violation(
		    outcome, "a timer was cancelled that had run or had been cancelled before");
	return true;
}

static void move_one(const struct order *order, void *self, uint32_t slot, uint64_t delay)
{
	uint64_t deadline = turn(order, self) + delay;
	if (deadline < atomic_load(&not_before_ns[slot]))
		atomic_store(&not_before_ns[slot], deadline);
	if (order->candidate->touch(self, 0, slot, delay))
		atomic_store(&not_before_ns[slot], deadline);
}

/* How many were cancelled. */
static uint32_t change_some(const struct order *order, void *self, struct random *random,
			    struct outcome *outcome)
{
	uint32_t cancelled = 0;
	for (unsigned i = 0; i < CHANGES_PER_MS; i++) {
		uint64_t draw = random_next(random);
		uint32_t slot = random_slot(draw, timers);
		if (draw % 3 == 0)
			cancelled += cancel_one(order, self, slot, outcome);
		else
			move_one(order, self, slot,
				 random_between(random_next(random), 0, LAST_NS));
	}
	return cancelled;
}

static void judge(uint32_t cancelled, struct outcome *outcome)
{
	static struct records all;
	recorded(&all);
	check_records(&all, outcome);
	if (all.fired + cancelled != timers)
		outcome_violation(outcome, "of %u timers %llu ran and %u were cancelled", timers,
				  (unsigned long long)all.fired, cancelled);
}

static void run(const struct order *order, struct outcome *outcome)
{
	struct random random = {.state = 1};
	uint32_t cancelled = 0, most = candidate_most_slots(order->candidate);
	timers = most < MOST_TIMERS ? most : MOST_TIMERS;
	void *self = make_candidate(order, timers, outcome);
	for (uint32_t slot = 0; slot < timers; slot++)
		schedule_one(order, self, slot,
			     random_between(random_next(&random), FIRST_NS, LAST_NS), outcome);
	uint64_t start = now_ns();
	for (unsigned round = 0; round < ROUNDS_MS; round++) {
		drive_until(order->candidate, self, start + round * MILLISECOND_NS);
		cancelled += change_some(order, self, &random, outcome);
	}
	uint64_t end = now_ns() + PATIENCE_NS;
	drive_until(order->candidate, self, now_ns() + LAST_NS + 20 * MILLISECOND_NS);
	while (recorded_fired() + cancelled < timers && now_ns() < end)
		drive_until(order->candidate, self, now_ns() + 2 * MILLISECOND_NS);
	order->candidate->destroy(self);
	judge(cancelled, outcome);
}

const struct workload workload_trial = {
    .name = "trial",
    .bit = ON_FIRE,
    .run = run,
};
