/* What happens next in a simulation (internal.h). */
#ifndef TW_EXECUTOR_SIM_STEP_H
#define TW_EXECUTOR_SIM_STEP_H

#include "executor/sim/internal.h"

/*
 * Carries out one event that is not later than limit_ns. Returns 1; 0: there is none; -ENOMEM,
 * -ELOOP.
 */
int tw__sim_step(tw_sim *sim, uint64_t limit_ns);

/*
 * Moves a drawn one of the workers that can move at this instant. The clock stays. UINT64_MAX:
 * however late they are. Returns as tw__sim_step.
 */
int tw__sim_move_worker(tw_sim *sim, uint64_t now_ns);

/* When the next event is; UINT64_MAX: never. */
uint64_t tw__sim_next_ns(tw_sim *sim);

/* The executor's submit. */
int tw__sim_submit(tw_executor *self, tw_batch *batch, size_t n);

/* Queues a copy of the item. The lock is held. Returns 0 or -ENOMEM. */
int tw__sim_enqueue(tw_sim *sim, const struct tw__sim_item *item);

/* Empties a queue. Tickets of batches go back to their services. */
void tw__sim_empty(struct tw__sim_queue *queue);

#endif
