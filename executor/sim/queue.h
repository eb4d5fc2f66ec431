/* The simulation's queues. */
#ifndef TW_EXECUTOR_SIM_QUEUE_H
#define TW_EXECUTOR_SIM_QUEUE_H

#include "executor/sim/internal.h"

/* The executor's submit. */
int tw__sim_submit(tw_executor *self, tw_batch *batch, size_t n);

/* Returns 0 or -ENOMEM. */
int tw__sim_enqueue(tw_sim *sim, const struct tw__sim_item *item);

/* Draws a queue, and takes one ticket of its first item into *run. False: nothing waits. */
bool tw__sim_take(tw_sim *sim, struct tw__sim_run *run);

/* Draws a number of 0 .. bound - 1; bound is at least 1. */
uint64_t tw__sim_draw(tw_sim *sim, uint64_t bound);

#endif
