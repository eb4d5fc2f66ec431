/*
 * The pool as services and layers use it, and a layer's base: it keeps a service, for timers, and
 * an executor, for work (wheel/run/work.h), from being closed. Includes what all layers use.
 */
#ifndef TW_EXECUTOR_BASE_H
#define TW_EXECUTOR_BASE_H

#include <errno.h>
#include <stdlib.h>

#include "mpsc/base/atomics.h"
#include "mpsc/base/futex.h"
#include "mpsc/base/assert.h"
#include "mpsc/base/misuse.h"
#include "mpsc/base/entry.h"
#include "tickwheel/context.h"
#include "tickwheel/pool.h"
#include "wheel/core/frame.h"
#include "wheel/run/work.h"

/*
 * As tw_pool_create, with the settings of a service's config, which are in range. queue 0: the pool
 * is the service's own, and takes no plain tasks.
 */
int tw__pool_create(tw_pool **out, uint32_t queue, const struct tw_service_config *config);

/* pool may be NULL. */
bool tw__pool_is_worker(const tw_pool *pool);

/* The pool that this executor is, or NULL. */
tw_pool *tw__pool_of(tw_executor *executor);

/* What layers read of a pool, directly after its executor. Constant. */
struct tw__pool_limits {
	/* its workers at most, up to TW__WORKERS_MAX */
	unsigned capacity;
	/*
	 * not 0: work that runs many things in a row looks at the time. NULL: it always does, as
	 * the pool cannot grow
	 */
	const _Atomic uint32_t *shortage;
};

static inline const struct tw__pool_limits *tw__pool_limits(const tw_executor *pool)
{
	return (const struct tw__pool_limits *)(const void *)(pool + 1);
}

/* The pool refuses to close until all have left. Returns 0, -ESHUTDOWN or -EPERM. */
int tw__pool_join(tw_pool *pool, bool service);

/* Nothing of the user is queued or runs. Ends the pool if it was the service's own. */
void tw__pool_leave(tw_pool *pool, bool service);

/* For tw_service_liveness. */
void tw__pool_look(tw_pool *pool, struct tw_service_liveness *out);

/* ------------------------------------------------------------------------ holds */

struct tw__base {
	tw_service *service;
	tw_executor *executor; /* takes submits from any thread */
	bool pooled;           /* it is a pool's */
	bool left;             /* its holder was destroyed: TW__BASE_LEFT */
};

/* executor NULL: the service's. Returns 0, -ESHUTDOWN or -EPERM. */
TW_PRIVATE int tw__base_hold(struct tw__base *base, tw_service *service, tw_executor *executor);

/* How a holder goes. */
enum tw__base_step {
	/*
	 * Asks whether the thread may wait for others: the executor is a pool, whose worker the
	 * thread is not, and it is not inside the service, where it may be the driver.
	 */
	TW__BASE_MAY_WAIT,
	/* The holder was destroyed while its work is out: the service's close waits. */
	TW__BASE_LEFT,
	/* No work is out. In a forked child no lock is taken. */
	TW__BASE_OVER
};

/* Returns the answer of the first step. The base is not touched after the last one. */
TW_PRIVATE bool tw__base_leave(struct tw__base *base, enum tw__base_step step);

/* The work calls no user function any more. If the executor refuses it, the driver runs it. */
static inline void tw__base_leave_work(const struct tw__base *base, struct tw__work *work)
{
	if (!base->pooled)
		tw__work_leave_executor(work);
}

#endif
