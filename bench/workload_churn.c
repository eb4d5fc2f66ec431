/*
 * W1: timers that are cancelled at random, as with timeouts of every length. Some fire meanwhile:
 * the cancel that finds one gone is simply followed by the schedule.
 */
#include "bench/load.h"
#include "bench/workload.h"

#define SHORTEST_NS SECOND_NS
#define LONGEST_NS (60 * SECOND_NS)

static void fill(struct load_thread *t)
{
	load_fill(t, SHORTEST_NS, LONGEST_NS);
}

static void work(struct load_thread *t, uint64_t ops)
{
	for (uint64_t i = 0; i < ops; i++) {
		if (i % OPS_PER_TURN == 0)
			load_turn(t);
		uint64_t draw = random_next(&t->random);
		uint32_t slot = t->first + random_slot(draw, t->slots);
		load_cancel(t, slot);
		load_schedule(t, slot, random_between(draw, SHORTEST_NS, LONGEST_NS));
	}
}

static void run(const struct order *order, struct outcome *outcome)
{
	run_load(order, order->n, fill, work, outcome);
}

const struct workload workload_churn = {
    .name = "W1",
    .title =
	"churn: n pending, timeouts 1 .. 60 s; one op cancels a random one and schedules another",
    .bit = ON_CHURN,
    .run = run,
    .many_threads = true,
    .grows = true,
    .curve_n = 100000,
    .quick_reps = 3,
    .reps = 3,
    .quick_s = 0.2,
    .s = 0.4,
    .quick_sizes = {1000, 100000, 1000000, NO_MORE_SIZES},
    .sizes = {1000, 100000, 1000000, 10000000, NO_MORE_SIZES},
    .quick_peer_sizes = {1000, NO_MORE_SIZES},
    .peer_sizes = {1000, 1000000, NO_MORE_SIZES},
    .columns = {{"ns_per_op", "ns/op", 1, 1}, {"cpu_ns_per_op", "cpu ns/op", 1, 1}},
};
