/*
 * W4: n timers due uniformly over 2 s. Each must run exactly once and not early; one in a hundred
 * more is cancelled beforehand and must never run. Lateness is that of the callback's start against
 * the deadline asked for, recorded for every timer. Beside it, a baseline thread sleeps from tick
 * to tick: what the machine's scheduler adds. Scheduling happens before, and is no part of the
 * figures; memory has been touched by a first round.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "bench/baseline.h"
#include "bench/measure.h"
#include "bench/random.h"
#include "bench/recorder.h"
#include "bench/workload.h"

#define WINDOW_NS (2 * SECOND_NS)

/* For those that fall behind: a heap of millions does. */
#define PATIENCE_NS(n) (20 * SECOND_NS + (n)*UINT64_C(10000))

enum { CANCELLED_SHARE = 100, FILL_PER_MS = 2000 };

static uint64_t first_ns; /* the window's begin */

/*
 * Slot and deadline within the window, so that a callback looks at no memory of its own: a cache
 * miss there would be most of the cost.
 */
static void *pack(uint32_t slot, uint64_t deadline_ns)
{
	return (void *)(uintptr_t)((uint64_t)slot << 32 | (deadline_ns - first_ns));
}

/*
 * Adding these up tells one set of slots from any other: two sums are the same by a chance of
 * 2^-64.
 */
static inline uint64_t mark_of(uint32_t slot)
{
	uint64_t z = (slot + UINT64_C(1)) * UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ z >> 32) * UINT64_C(0xbf58476d1ce4e5b9);
	return z ^ z >> 29;
}

static void fire(void *packed)
{
	uint64_t at = now_ns(), word = (uint64_t)(uintptr_t)packed;
	struct recorder *mine = recorder_mine();
	mine->sum += mark_of((uint32_t)(word >> 32));
	recorder_note(mine, first_ns + (word & UINT32_MAX), at);
}

static void never(void *arg)
{
	(void)arg;
	recorder_mine()->wrong++;
}

/* Filling is paced, for every candidate alike: it is not what this workload is about. */
static void schedule(const struct order *order, void *self, uint32_t slot, uint64_t deadline_ns,
		     expiry_fn *fn, struct outcome *outcome)
{
	const struct candidate *candidate = order->candidate;
	for (;;) {
		uint64_t now = now_ns();
		if (candidate->turn)
			candidate->turn(self, 0, now);
		if (now >= deadline_ns)
			outcome_fail(outcome,
				     "too slow to schedule %u timers before the first is due",
				     order->n);
		int answer = candidate->schedule(self, 0, slot, deadline_ns - now, fn,
						 pack(slot, deadline_ns));
		if (answer == 0)
			break;
		if (answer != -EAGAIN)
			outcome_fail(outcome, "schedule refused: %s", strerror(-answer));
		sched_yield();
	}
	if (slot % FILL_PER_MS == FILL_PER_MS - 1)
		sleep_until_ns(now_ns() + MILLISECOND_NS);
}

/* All slots an hour out, and cancelled again. The time that scheduling them took. */
static uint64_t touch_memory(const struct order *order, void *self, uint32_t slots,
			     struct outcome *outcome)
{
	struct random random = {.state = 2};
	uint64_t start = now_ns();
	first_ns = start + 3600 * SECOND_NS;
	for (uint32_t slot = 0; slot < slots; slot++) {
		uint64_t deadline = first_ns + random_between(random_next(&random), 0, WINDOW_NS);
		schedule(order, self, slot, deadline, never, outcome);
	}
	uint64_t took = now_ns() - start;
	for (uint32_t slot = 0; slot < slots; slot++)
		if (!order->candidate->cancel(self, slot))
			outcome_violation(outcome, "a pending timer could not be cancelled");
	drive_until(order->candidate, self, now_ns() + 200 * MILLISECOND_NS);
	return took;
}

/* Which timers run: their number, and the sum of their marks. */
struct wanted {
	uint32_t count;
	uint64_t sum;
};

/* The window begins late enough to schedule all before. */
static struct wanted schedule_all(const struct order *order, void *self, uint32_t slots,
				  uint64_t expected_ns, struct outcome *outcome)
{
	struct wanted wanted = {slots, 0};
	struct random random = {.state = 1};
	first_ns = now_ns() + 500 * MILLISECOND_NS + 3 * expected_ns;
	for (uint32_t slot = 0; slot < slots; slot++) {
		uint64_t deadline = first_ns + random_between(random_next(&random), 0, WINDOW_NS);
		schedule(order, self, slot, deadline, fire, outcome);
		wanted.sum += mark_of(slot);
	}
	for (uint32_t slot = 0; slot < slots; slot += CANCELLED_SHARE + 1) {
		if (!order->candidate->cancel(self, slot))
			outcome_violation(outcome, "a pending timer could not be cancelled");
		wanted.count--;
		wanted.sum -= mark_of(slot);
	}
	return wanted;
}

static void check(const struct records *all, const struct wanted *wanted, struct outcome *outcome)
{
	check_records(all, outcome);
	if (all->fired != wanted->count)
		outcome_violation(outcome, "%llu of %u timers ran", (unsigned long long)all->fired,
				  wanted->count);
	else if (all->sum != wanted->sum)
		outcome_violation(
		    outcome,
		    "as many timers ran as should, but others: cancelled ones, or some twice");
}

/*
 * Lets them fire; the CPU time of it, without the baseline's. A turn of a loop that lasts from
 * before the window until into it has run timers, and counts as a whole.
 */
static uint64_t let_fire(const struct order *order, void *self, uint32_t wanted,
			 struct baseline *baseline, struct outcome *outcome)
{
	uint64_t end = first_ns + WINDOW_NS, cpu = process_cpu_ns();
	drive_until(order->candidate, self, first_ns - MILLISECOND_NS);
	if (now_ns() < first_ns)
		cpu = process_cpu_ns();
	baseline_start(baseline, first_ns, end, outcome);
	drive_until(order->candidate, self, end);
	while (recorded_fired() < wanted && now_ns() < end + PATIENCE_NS(order->n))
		drive_until(order->candidate, self, now_ns() + 2 * MILLISECOND_NS);
	baseline_join(baseline);
	return process_cpu_ns() - cpu - baseline->cpu_ns;
}

static void run(const struct order *order, struct outcome *outcome)
{
	static struct baseline baseline;
	static struct records all;
	struct candidate_view before, after;
	uint32_t slots = order->n + order->n / CANCELLED_SHARE;
	void *self = make_candidate(order, slots, outcome);
	uint64_t expected = touch_memory(order, self, slots, outcome);
	struct wanted wanted = schedule_all(order, self, slots, expected, outcome);
	order->candidate->view(self, &before);
	uint64_t cpu = let_fire(order, self, wanted.count, &baseline, outcome);
	/*
	 * A cancelled one that runs after all would do so in its own tick, and all ticks are over
	 * by now.
	 */
	order->candidate->view(self, &after);
	order->candidate->destroy(self);
	recorded(&all);
	outcome_set(outcome, "cpu_ns_per_op", (double)cpu / wanted.count);
	set_lateness(outcome, &all.lateness, &baseline.lateness);
	set_ticks(outcome, &before, &after);
	set_baseline_ticks(outcome, &baseline);
	check(&all, &wanted, outcome);
}

const struct workload workload_fire = {
    .name = "W4",
    .bit = ON_FIRE,
    .run = run,
};
