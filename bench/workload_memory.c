/*
 * W6: growth of resident memory by n pending timers, all that a timer needs included: the handle or
 * record that its user keeps (user_bytes_per_timer says how much of it that is), and what the
 * service itself needs to exist.
 */
#include "bench/measure.h"
#include "bench/workload.h"

static void run(const struct order *order, struct outcome *outcome)
{
	struct candidate_view view;
	uint64_t before = resident_bytes();
	void *self = make_candidate(order, order->n, outcome);
	fill_slots(order, self, 40 * SECOND_NS, 100 * SECOND_NS, outcome);
	drive_until(order->candidate, self, now_ns() + 500 * MILLISECOND_NS);
	uint64_t after = resident_bytes();
	order->candidate->view(self, &view);
	double growth = after > before ? (double)(after - before) : 0;
	outcome_set(outcome, "bytes_per_timer", growth / order->n);
	outcome_set(outcome, "user_bytes_per_timer", (double)view.user_bytes);
	outcome_set(outcome, "rss_growth_bytes", growth);
	if (view.pending != order->n)
		outcome_violation(outcome, "%llu timers pending instead of %u",
				  (unsigned long long)view.pending, order->n);
	order->candidate->destroy(self);
}

const struct workload workload_memory = {
    .name = "W6",
    .bit = ON_MEMORY,
    .run = run,
};
