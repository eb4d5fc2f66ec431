/* One step of a simulation. */
#ifndef TW_EXECUTOR_SIM_STEP_H
#define TW_EXECUTOR_SIM_STEP_H

#include "executor/sim/internal.h"

/*
 * Carries out one event that is not later than limit_ns. 1: done; 0: there is none; -ENOMEM,
 * -ELOOP.
 */
int tw__sim_step(tw_sim *sim, uint64_t limit_ns);

/* The same without the clock, with any lateness of the workers. */
int tw__sim_step_workers(tw_sim *sim);

/* When the next event is; UINT64_MAX: never. */
uint64_t tw__sim_next_ns(tw_sim *sim);

/* The executor's submit. */
int tw__sim_submit(tw_executor *self, tw_batch *batch, size_t n);

/* Returns 0 or -ENOMEM. */
int tw__sim_enqueue(tw_sim *sim, const struct tw__sim_item *item);

#endif
