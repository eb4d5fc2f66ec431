/* One step of a simulation. */
#ifndef TW_EXECUTOR_SIM_STEP_H
#define TW_EXECUTOR_SIM_STEP_H

#include "executor/sim/internal.h"

/* One event not later than limit_ns. 1: done; 0: none before or at it; -ENOMEM, -ELOOP. */
int tw__sim_step(tw_sim *sim, uint64_t limit_ns);

/* The same without the clock, whatever the workers' lateness. */
int tw__sim_step_workers(tw_sim *sim);

/* When the next event is; UINT64_MAX: never. */
uint64_t tw__sim_next_ns(tw_sim *sim);

#endif
