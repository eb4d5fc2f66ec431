/*
 * W3: connections whose idle timeout is pushed away by each packet. None is idle long enough to be
 * closed.
 */
#include "bench/load.h"
#include "bench/workload.h"

#define IDLE_NS (30 * SECOND_NS)

/* As if the connections had last been heard of at different times. */
static void fill(struct load_thread *t)
{
	load_fill(t, IDLE_NS / 3, IDLE_NS);
}

static void work(struct load_thread *t, uint64_t ops)
{
	for (uint64_t i = 0; i < ops; i++) {
		if (i % OPS_PER_TURN == 0)
			load_turn(t);
		uint32_t slot = t->first + random_slot(random_next(&t->random), t->slots);
		if (!t->touch(t->self, t->index, slot, IDLE_NS))
			load_schedule(t, slot, IDLE_NS);
	}
}

static void run(const struct order *order, struct outcome *outcome)
{
	run_load(order, order->n, fill, work, outcome);
}

const struct workload workload_touch = {
    .name = "W3",
    .bit = ON_TOUCH,
    .run = run,
};
