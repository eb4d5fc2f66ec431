/* The services of a pool. */
#ifndef TW_EXECUTOR_POOL_SOURCE_H
#define TW_EXECUTOR_POOL_SOURCE_H

#include "executor/pool/parts.h"

/* Tells whether runs wait that services have handed over. */
bool tw__sources_empty(tw_pool *pool);

/* The next batch of any source, or NULL. */
tw_batch *tw__sources_take(tw_pool *pool);

/*
 * How many blocking runs the executor can hold at a time: the maximum of a pool, through its public
 * face or a service's; 0 (unknown) if it is no pool's.
 */
unsigned tw__executor_capacity(tw_executor *executor);

/*
 * A service begins to use the pool: *out is its source, (tw_executor *)*out its executor. Returns
 * 0, -ENOMEM, or -ESHUTDOWN: the pool is closed.
 */
int tw__pool_join(struct tw__source **out, tw_pool *pool);

/*
 * Nothing of the service is queued or runs. Destroys the pool if it was the service's own. NULL
 * does nothing.
 */
void tw__pool_leave(struct tw__source *source);

/*
 * A layer begins to run work on the pool, which refuses to close until the layer lets go. Returns
 * 0, -ESHUTDOWN or -EPERM.
 */
int tw__pool_hold(tw_pool *pool);
void tw__pool_let_go(tw_pool *pool);

/*
 * The face of the pool that takes submits from any thread: for a service's own face that of its
 * pool; any other executor itself.
 */
tw_executor *tw__shared_executor(tw_executor *executor);

/*
 * In a forked child, which has no workers: frees the pool if it was the service's own. NULL does
 * nothing.
 */
void tw__pool_leave_forked(struct tw__source *source);

/*
 * For tw_service_liveness. pool_at_max: runs wait, and either all max_workers workers are inside
 * runs, or jobs wait and all workers that may run jobs are inside one.
 */
void tw__source_look(void *source, struct tw_service_liveness *out);

#endif
