/*
 * W12: the cost of a task in each layer, beside a plain pool and a bare ring. One thread submits,
 * and one worker runs. At most WINDOW tasks are submitted and have not run.
 */
#include "bench/burst.h"

enum { WINDOW = 1024 };

static uint64_t post_until(const struct order *order, void *self, uint64_t posted, uint64_t end_ns)
{
	while (now_ns() < end_ns) {
		for (unsigned i = 0; i < WINDOW / 4; i++)
			burst_post(order, self, burst_count, NULL);
		posted += WINDOW / 4;
		if (posted > WINDOW)
			burst_await(posted - WINDOW);
	}
	return posted;
}

static void run(const struct order *order, struct outcome *outcome)
{
	void *self = make_candidate(order, WINDOW, outcome);
	uint64_t warm = post_until(order, self, 0, now_ns() + 50 * MILLISECOND_NS);
	burst_await(warm);
	uint64_t wall = now_ns(), cpu = process_cpu_ns();
	uint64_t posted =
	    post_until(order, self, warm, wall + (order->quick ? 100 : 400) * MILLISECOND_NS);
	burst_await(posted);
	wall = now_ns() - wall;
	cpu = process_cpu_ns() - cpu;
	double ops = (double)(posted - warm);
	order->candidate->destroy(self);
	outcome_set(outcome, "ns_per_op", (double)wall / ops);
	outcome_set(outcome, "cpu_ns_per_op", (double)cpu / ops);
	outcome_set(outcome, "runs_per_s", ops * (double)SECOND_NS / (double)wall);
	if (recorded_fired() != posted)
		outcome_violation(outcome, "%llu tasks ran instead of %llu",
				  (unsigned long long)recorded_fired(), (unsigned long long)posted);
}

const struct workload workload_layers = {
    .name = "W12",
    .bit = ON_LAYERS,
    .run = run,
};
