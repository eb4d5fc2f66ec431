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
    .title = "touch: n connections, one op pushes a random one's deadline to now + 30 s",
    .bit = ON_TOUCH,
    .run = run,
    .many_threads = true,
    .grows = true,
    .curve_n = 10000,
    .quick_reps = 3,
    .reps = 3,
    .quick_s = 0.2,
    .s = 0.4,
    .quick_sizes = {10000, 1000000, NO_MORE_SIZES},
    .sizes = {10000, 1000000, NO_MORE_SIZES},
    .quick_peer_sizes = {NO_MORE_SIZES},
    .peer_sizes = {10000, NO_MORE_SIZES},
    .columns = {{"ns_per_op", "ns/op", 1, 1}, {"cpu_ns_per_op", "cpu ns/op", 1, 1}},
};
