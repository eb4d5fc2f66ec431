/* The pool as services and layers use it. Its public face is tickwheel/pool.h. */
#ifndef TW_EXECUTOR_POOL_H
#define TW_EXECUTOR_POOL_H

#include "mpsc/base/atomics.h"
#include "tickwheel/pool.h"

/*
 * Creates a pool with the workers, max_workers and thread settings of a service's config, which are
 * in range; 0: default. queue: plain tasks that may wait; 0: a service creates the pool for itself,
 * and no plain task gets in. Returns what tw_pool_create returns.
 */
int tw__pool_create(tw_pool **out, uint32_t queue, const struct tw_service_config *config);

/* Tells whether the calling thread is one of the pool's workers; false if pool is NULL. */
bool tw__pool_is_worker(const tw_pool *pool);

/* The pool that this executor is, or NULL. */
tw_pool *tw__pool_of(tw_executor *executor);

/* What layers read of a pool. It comes directly after the pool's executor. Constant. */
struct tw__pool_limits {
	/* its workers at most, as many blocking runs as it holds: up to TW__WORKERS_MAX */
	unsigned capacity;
	/*
	 * A hint for work that runs many things in a row: not 0 while a thread of the pool is
	 * missed elsewhere, so the work looks at the time. NULL: the pool cannot grow, and the work
	 * always looks.
	 */
	const _Atomic uint32_t *shortage;
};

static inline const struct tw__pool_limits *tw__pool_limits(const tw_executor *pool)
{
	return (const struct tw__pool_limits *)(const void *)(pool + 1);
}

/*
 * A service, or a layer, begins to use the pool, which refuses to close until all have left.
 * Returns 0, -ESHUTDOWN or -EPERM.
 */
int tw__pool_join(tw_pool *pool, bool service);

/*
 * Nothing of the service or the layer is queued or runs. Destroys the pool if it was the service's
 * own. In a forked child no lock is taken: it may be held forever.
 */
void tw__pool_leave(tw_pool *pool, bool service);

/*
 * For tw_service_liveness. pool_at_max: runs wait and all max_workers workers are inside one, or
 * jobs wait and all workers that may run jobs are inside one.
 */
void tw__pool_look(void *pool, struct tw_service_liveness *out);

#endif
