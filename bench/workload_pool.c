/*
 * W11: hand-over to a pool of 1, 2, 4 workers. Either bursts of empty callbacks, timed from the
 * first hand-over to the last return; or a hundred every 5 ms of which one sleeps for a
 * millisecond: how long must a fast one wait that finds a worker asleep, or on the slow one? A
 * candidate with `submit_bulk` is given a burst beforehand and hands it over as a whole.
 */
#include <stdlib.h>

#include "bench/baseline.h"
#include "bench/burst.h"

enum { EMPTY = 1, SLOW = 2 };
enum { BURST = 20000, ROUND = 100 };

#define ROUND_NS (5 * MILLISECOND_NS)
#define SLOW_NS MILLISECOND_NS

/* ---- empty */

struct spent {
	uint64_t wall_ns, cpu_ns, runs;
};

static void hand_over(const struct order *order, void *self, expiry_fn *fn, void *const *args,
		      uint32_t n)
{
	if (order->candidate->submit_bulk) {
		order->candidate->go(self);
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		burst_post(order, self, fn, args[i]);
}

/* True: it can be timed. */
static bool submit_burst(const struct order *order, void *self, expiry_fn *fn, void *const *args,
			 uint32_t n, struct outcome *outcome)
{
	int answer =
	    order->candidate->submit_bulk ? order->candidate->submit_bulk(self, fn, args, n) : 0;
	if (answer < 0)
		outcome_fail(outcome, "a burst was refused");
	return answer == 0;
}

static void fire_burst(const struct order *order, void *self, uint64_t *fired, struct spent *spent,
		       struct outcome *outcome)
{
	static void *args[BURST];
	bool timed = submit_burst(order, self, burst_count, args, BURST, outcome);
	uint64_t wall = now_ns(), cpu = process_cpu_ns();
	hand_over(order, self, burst_count, args, BURST);
	burst_await(*fired += BURST);
	if (!timed)
		return;
	spent->wall_ns += now_ns() - wall;
	spent->cpu_ns += process_cpu_ns() - cpu;
	spent->runs += BURST;
}

static void run_empty(const struct order *order, void *self, struct outcome *outcome)
{
	struct spent warm = {0}, spent = {0};
	uint64_t fired = 0, end_ns = now_ns() + (order->quick ? 100 : 200) * MILLISECOND_NS;
	while (warm.runs < 3 * BURST)
		fire_burst(order, self, &fired, &warm, outcome);
	while (now_ns() < end_ns || spent.runs < 5 * BURST)
		fire_burst(order, self, &fired, &spent, outcome);
	double runs = (double)spent.runs;
	outcome_set(outcome, "ns_per_op", (double)spent.wall_ns / runs);
	outcome_set(outcome, "cpu_ns_per_op", (double)spent.cpu_ns / runs);
	outcome_set(outcome, "runs_per_s", runs * (double)SECOND_NS / (double)spent.wall_ns);
}

/* ---- one in a hundred is slow */

static _Atomic uint64_t handed_ns; /* the present round's; each ends before the next begins */

static void run_mixed(void *slow)
{
	uint64_t at = now_ns();
	struct recorder *mine = recorder_mine();
	if (slow) {
		sleep_until_ns(at + SLOW_NS);
		burst_count(NULL);
	} else {
		recorder_note(mine, atomic_load_explicit(&handed_ns, memory_order_relaxed), at);
	}
}

static void run_rounds(const struct order *order, void *self, struct outcome *outcome)
{
	static struct records records;
	void *args[ROUND] = {NULL};
	unsigned rounds = order->quick ? 40 : 200;
	uint64_t next_ns = now_ns() + ROUND_NS;
	for (unsigned round = 0; round < rounds; round++, next_ns += ROUND_NS) {
		unsigned slow = round * 37 % ROUND;
		args[slow] = &handed_ns;
		atomic_store_explicit(&handed_ns, now_ns(), memory_order_relaxed);
		(void)submit_burst(order, self, run_mixed, args, ROUND, outcome);
		sleep_until_ns(next_ns);
		atomic_store_explicit(&handed_ns, now_ns(), memory_order_relaxed);
		hand_over(order, self, run_mixed, args, ROUND);
		while (recorded_fired() < (uint64_t)(round + 1) * ROUND)
			sleep_until_ns(now_ns() + 200000);
		args[slow] = NULL;
	}
	recorded(&records);
	outcome_set(outcome, "wait_p50_ns", (double)lateness_percentile_ns(&records.lateness, 0.5));
	outcome_set(outcome, "wait_p99_ns",
		    (double)lateness_percentile_ns(&records.lateness, 0.99));
	outcome_set(outcome, "wait_max_ns", (double)records.lateness.max_ns);
	check_records(&records, outcome);
}

static void run(const struct order *order, struct outcome *outcome)
{
	void *self = make_candidate(order, BURST, outcome);
	if (order->n == EMPTY)
		run_empty(order, self, outcome);
	else
		run_rounds(order, self, outcome);
	order->candidate->destroy(self);
}

const struct workload workload_pool = {
    .name = "W11",
    .bit = ON_POOL,
    .run = run,
};
