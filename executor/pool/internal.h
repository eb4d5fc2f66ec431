/* The pool as services use it; its public face is tickwheel/pool.h. */
#ifndef TW_EXECUTOR_POOL_H
#define TW_EXECUTOR_POOL_H

#include "tickwheel/pool.h"

struct tw__source;

/*
 * With the workers, max_workers and thread settings of a service's config, which are in range; 0: default.
 * owned: one service makes it for itself. Returns what tw_pool_create returns.
 */
int tw__pool_create(tw_pool **out, uint32_t queue, bool owned, const struct tw_service_config *config);

/* The pool whose public face the executor is, or NULL. */
tw_pool *tw__pool_of(tw_executor *executor);

/* A face of the pool whose work runs on one of its threads, always the same; in turn another one. For work alone (wheel/run/work.h). */
tw_executor *tw__pool_pin(tw_pool *pool);

#endif
