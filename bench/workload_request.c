/*
 * W2: request timeouts: each thread has 64 requests under way, and the oldest is always answered
 * first. W7 is the same with timeouts of 60 s for a fixed time, and looks at what the cancelled
 * ones leave behind in memory.
 */
#include "bench/load.h"
#include "bench/workload.h"

enum { OUTSTANDING = 64 };

static void request(struct load_thread *t, uint64_t ops, uint64_t timeout_ns)
{
	for (uint64_t i = 0; i < ops; i++) {
		if (i % OPS_PER_TURN == 0)
			load_turn(t);
		uint32_t slot = t->first + t->oldest;
		t->oldest = (t->oldest + 1) % OUTSTANDING;
		load_cancel(t, slot);
		load_schedule(t, slot, timeout_ns);
	}
}

static void work_short(struct load_thread *t, uint64_t ops)
{
	request(t, ops, SECOND_NS);
}

static void work_long(struct load_thread *t, uint64_t ops)
{
	request(t, ops, 60 * SECOND_NS);
}

static void fill_short(struct load_thread *t)
{
	load_fill(t, SECOND_NS, SECOND_NS);
}

static void fill_long(struct load_thread *t)
{
	load_fill(t, 60 * SECOND_NS, 60 * SECOND_NS);
}

static void run_request(const struct order *order, struct outcome *outcome)
{
	run_load(order, OUTSTANDING * order->threads, fill_short, work_short, outcome);
}

static void run_retention(const struct order *order, struct outcome *outcome)
{
	struct load load;
	uint32_t slots = OUTSTANDING * order->threads;
	void *self = make_candidate(order, slots, outcome);
	load_set_up(&load, order, self);
	load.fill = fill_long;
	load.work = work_long;
	load.warm_up_ns = 0;
	load.duration_ns = (order->quick ? 2 : 10) * SECOND_NS;
	forget_resident_peak();
	uint64_t before = resident_bytes();
	load_run(&load, slots, outcome);
	uint64_t peak = resident_peak_bytes();
	outcome_set(outcome, "rss_growth_bytes", peak > before ? (double)(peak - before) : 0);
	outcome_set(outcome, "ops_per_s", (double)load.done * 1e9 / (double)load.wall_ns);
	order->candidate->destroy(self);
}

const struct workload workload_request = {
    .name = "W2",
    .bit = ON_REQUEST,
    .run = run_request,
};

const struct workload workload_retention = {
    .name = "W7",
    .bit = ON_RETENTION,
    .run = run_retention,
};
