/*
 * W8: n timers that are all due in the same tick, as when a server loses all its connections. One
 * thread arms them flat out (a reconnect storm), and they are handed over flat out. The time to
 * hand over all is the time from their deadline to the start of the last callback. A first round
 * that was cancelled has touched the memory.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "bench/baseline.h"
#include "bench/load.h"
#include "bench/workload.h"

#define PATIENCE_NS (20 * SECOND_NS)

/*
 * One deadline for all, counted from the time of the turn: they fall into one tick. Returns the
 * time it took.
 */
static uint64_t arm_all(const struct order *order, void *self, uint64_t deadline_ns,
			struct outcome *outcome)
{
	const struct candidate *candidate = order->candidate;
	uint64_t start = now_ns(), loop_ns = start;
	for (uint32_t slot = 0; slot < order->n;) {
		if (slot % OPS_PER_TURN == 0) {
			loop_ns = now_ns();
			if (candidate->turn)
				candidate->turn(self, 0, loop_ns);
		}
		if (loop_ns >= deadline_ns)
			outcome_fail(outcome, "too slow to schedule %u timers before they are due",
				     order->n);
		int answer = candidate->schedule(self, 0, slot, deadline_ns - loop_ns,
						 record_deadline, (void *)(uintptr_t)deadline_ns);
		if (answer == 0)
			slot++;
		else if (answer == -EAGAIN)
			sched_yield();
		else
			outcome_fail(outcome, "schedule refused: %s", strerror(-answer));
	}
	return now_ns() - start;
}

/* The time that arming took. */
static uint64_t touch_memory(const struct order *order, void *self, struct outcome *outcome)
{
	uint64_t took = arm_all(order, self, now_ns() + 3600 * SECOND_NS, outcome);
	for (uint32_t slot = 0; slot < order->n; slot++)
		if (!order->candidate->cancel(self, slot))
			outcome_violation(outcome, "a pending timer could not be cancelled");
	drive_until(order->candidate, self, now_ns() + 200 * MILLISECOND_NS);
	return took;
}

/*
 * Shortly after a tick began, so that delays that are counted a moment later still end in the same
 * one.
 */
static uint64_t storm_time(uint64_t not_before_ns)
{
	return (not_before_ns / TICK_NS + 1) * TICK_NS + TICK_NS / 10;
}

static void run(const struct order *order, struct outcome *outcome)
{
	static struct baseline baseline;
	static struct records all;
	struct candidate_view before, after;
	void *self = make_candidate(order, order->n, outcome);
	uint64_t expected = touch_memory(order, self, outcome);
	uint64_t due = storm_time(now_ns() + 300 * MILLISECOND_NS + 3 * expected);
	uint64_t arming = arm_all(order, self, due, outcome);
	drive_until(order->candidate, self, due - 20 * MILLISECOND_NS);
	order->candidate->view(self, &before);
	uint64_t cpu = process_cpu_ns();
	baseline_start(&baseline, due - 10 * MILLISECOND_NS, due + 200 * MILLISECOND_NS, outcome);
	while (recorded_fired() < order->n && now_ns() < due + PATIENCE_NS)
		drive_until(order->candidate, self, now_ns() + MILLISECOND_NS);
	baseline_join(&baseline);
	cpu = process_cpu_ns() - cpu - baseline.cpu_ns;
	order->candidate->view(self, &after);
	order->candidate->destroy(self);
	recorded(&all);
	outcome_set(outcome, "hand_over_ns", (double)all.lateness.max_ns);
	outcome_set(outcome, "cpu_ns_per_op", (double)cpu / order->n);
	outcome_set(outcome, "arm_ns_per_op", (double)arming / order->n);
	set_lateness(outcome, &all.lateness, &baseline.lateness);
	set_ticks(outcome, &before, &after);
	check_records(&all, outcome);
	if (all.fired != order->n)
		outcome_violation(outcome, "%llu of %u timers ran", (unsigned long long)all.fired,
				  order->n);
}

const struct workload workload_storm = {
    .name = "W8",
    .bit = ON_STORM,
    .run = run,
};
