/* Starting and ending threads beyond the minimum. */
#ifndef TW_EXECUTOR_POOL_GROW_H
#define TW_EXECUTOR_POOL_GROW_H

#include "executor/pool/parts.h"

/* The starter. */
int tw__starter_start(tw_pool *pool, const struct tw_service_config *config);

/* Waits until no run waits, and the starter has ended. */
void tw__starter_stop(tw_pool *pool);

/* A run waits, and no worker is idle. */
void tw__starter_arm(tw_pool *pool);

/*
 * Tells whether runs wait that any worker may take. Counts as a joiner of open batches while it
 * looks.
 */
bool tw__pool_runs_wait(tw_pool *pool);

#endif
