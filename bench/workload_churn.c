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
    .bit = ON_CHURN,
    .run = run,
};
