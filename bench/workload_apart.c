/*
 * W13: schedule and cancel timed apart, with n timers pending: a batch of them is cancelled, then
 * scheduled again. The page docs/lars.md is made of it. Wall time is the caller's; CPU time is the
 * whole process's for both together.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "bench/ledger.h"
#include "bench/baseline.h"
#include "bench/load.h"
#include "bench/workload.h"

#define SHORTEST_NS (30 * SECOND_NS)
#define LONGEST_NS (60 * SECOND_NS)

enum { LEAST_BATCH = 64, MOST_BATCH = 65536, STRIDE = 1000003 };

struct apart {
	const struct order *order;
	void *self;
	struct random random;
	struct outcome *outcome;
	uint32_t batch, position;
	uint64_t scheduled, cancelled, schedule_ns, cancel_ns, loop_ns;
};

static void apart_turn(struct apart *apart)
{
	apart->loop_ns = now_ns();
	if (apart->order->candidate->turn)
		apart->order->candidate->turn(apart->self, 0, apart->loop_ns);
}

static void apart_schedule(struct apart *apart, uint32_t slot)
{
	uint64_t delay = random_between(random_next(&apart->random), SHORTEST_NS, LONGEST_NS);
	void *arg = (void *)(uintptr_t)(apart->loop_ns + delay);
	int answer;
	while ((answer = apart->order->candidate->schedule(apart->self, 0, slot, delay,
							   record_deadline, arg)) == -EAGAIN)
		sched_yield();
	if (answer != 0)
		outcome_fail(apart->outcome, "schedule refused: %s", strerror(-answer));
	apart->scheduled++;
}

/* The stride has no factor in common with n, so that a batch names no slot twice. */
static uint32_t apart_next(struct apart *apart)
{
	apart->position = (uint32_t)(((uint64_t)apart->position + STRIDE) % apart->order->n);
	return apart->position;
}

static void apart_round(struct apart *apart)
{
	uint32_t first = apart->position;
	uint64_t start = now_ns();
	for (uint32_t i = 0; i < apart->batch; i++) {
		if (i % OPS_PER_TURN == 0)
			apart_turn(apart);
		apart->cancelled += apart->order->candidate->cancel(apart->self, apart_next(apart));
	}
	uint64_t middle = now_ns();
	apart->position = first;
	for (uint32_t i = 0; i < apart->batch; i++) {
		if (i % OPS_PER_TURN == 0)
			apart_turn(apart);
		apart_schedule(apart, apart_next(apart));
	}
	apart->schedule_ns += now_ns() - middle;
	apart->cancel_ns += middle - start;
}

static void apart_rounds(struct apart *apart, uint64_t duration_ns)
{
	for (uint64_t end = now_ns() + duration_ns; now_ns() < end;)
		apart_round(apart);
}

static void apart_measure(struct apart *apart)
{
	struct outcome *outcome = apart->outcome;
	apart->schedule_ns = apart->cancel_ns = 0;
	uint64_t cpu = process_cpu_ns(), before = apart->cancelled;
	apart_rounds(apart, (apart->order->quick ? 100 : 500) * MILLISECOND_NS);
	cpu = process_cpu_ns() - cpu;
	double ops = (double)(apart->cancelled - before);
	outcome_set(outcome, "schedule_ns", (double)apart->schedule_ns / ops);
	outcome_set(outcome, "cancel_ns", (double)apart->cancel_ns / ops);
	outcome_set(outcome, "cpu_ns_per_op", (double)cpu / ops);
}

static uint32_t apart_batch(uint32_t n)
{
	uint32_t batch = n / 8;
	return batch < LEAST_BATCH ? LEAST_BATCH : batch > MOST_BATCH ? MOST_BATCH : batch;
}

static void run(const struct order *order, struct outcome *outcome)
{
	static struct records all;
	struct apart apart = {.order = order,
			      .random = {.state = 1},
			      .outcome = outcome,
			      .batch = apart_batch(order->n)};
	apart.self = make_candidate(order, order->n, outcome);
	for (uint32_t slot = 0; slot < order->n; slot++) {
		if (slot % OPS_PER_TURN == 0)
			apart_turn(&apart);
		apart_schedule(&apart, slot);
	}
	apart_rounds(&apart, (order->quick ? 100 : 300) * MILLISECOND_NS);
	apart_measure(&apart);
	check_ledger(order->candidate, apart.self, apart.scheduled, apart.cancelled, outcome);
	recorded(&all);
	check_records(&all, outcome);
	order->candidate->destroy(apart.self);
}

const struct workload workload_apart = {
    .name = "W13",
    .title = "apart: n pending; schedule and cancel timed apart",
    .bit = ON_APART,
    .run = run,
    .named_only = true,
    .quick_reps = 1,
    .reps = 2,
    .quick_s = 0.3,
    .s = 1,
    .s_per_timer = 1e-6,
    .quick_sizes = {1000, 1000000, NO_MORE_SIZES},
    .sizes = {1000, 10000, 100000, 1000000, 10000000, NO_MORE_SIZES},
    .quick_peer_sizes = {1000, NO_MORE_SIZES},
    .peer_sizes = {1000, 10000, 100000, 1000000, 10000000, NO_MORE_SIZES},
    .columns = {{"schedule_ns", "schedule ns", 1, 1},
		{"cancel_ns", "cancel ns", 1, 1},
		{"cpu_ns_per_op", "cpu ns/pair", 1, 1}},
};
