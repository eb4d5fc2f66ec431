/* The pool as services use it; its public face is tickwheel/pool.h. */
#ifndef TW_EXECUTOR_POOL_H
#define TW_EXECUTOR_POOL_H

#include "tickwheel/pool.h"

struct tw__source;

/*
 * Creates a pool with the workers, max_workers and thread settings of a service's config, which are
 * in range; 0: default. owned: a service creates it for itself. Returns what tw_pool_create
 * returns.
 */
int tw__pool_create(tw_pool **out, uint32_t queue, bool owned,
		    const struct tw_service_config *config);

/* Tells whether the calling thread is one of the pool's workers; false if pool is NULL. */
bool tw__pool_is_worker(const tw_pool *pool);

/* The pool whose public face is this executor, or NULL. */
tw_pool *tw__pool_of(tw_executor *executor);

#endif
