/* Starting threads beyond the minimum. */
#ifndef TW_EXECUTOR_POOL_GROW_H
#define TW_EXECUTOR_POOL_GROW_H

#include "executor/pool/parts.h"

/* The starter. */
int tw__starter_start(tw_pool *pool, const struct tw_service_config *config);

/* Waits until nothing waits, and the starter has ended. */
void tw__starter_stop(tw_pool *pool);

#endif
