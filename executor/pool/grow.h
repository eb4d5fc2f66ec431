/* Starting and ending threads beyond the minimum. */
#ifndef TW_EXECUTOR_POOL_GROW_H
#define TW_EXECUTOR_POOL_GROW_H

#include "executor/pool/parts.h"

/* The reserve. */
int tw__reserve_start(tw_pool *pool, const struct tw_service_config *config);

/* Waits until no run waits, and the reserve has ended. */
void tw__reserve_stop(tw_pool *pool);

/*
 * A run waits, and no worker is idle. A worker leaves it to the reserve when to look, so a busy
 * pool is not disturbed. A submitter hurries it.
 */
void tw__reserve_arm(tw_pool *pool);

/* The worker's thread ends. */
void tw__reserve_retired(struct tw__worker *self);

/*
 * Tells whether runs wait that any worker may take. Counts as a joiner of open batches while it
 * looks.
 */
bool tw__pool_runs_wait(tw_pool *pool);

#endif
