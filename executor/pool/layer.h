/*
 * What layers (strands, schedulers, limiters and others) are built on: a service for their timers,
 * and an executor for their work (wheel/run/work.h). A base keeps both from being closed.
 *
 * This header includes what all layers use: a layer's sources include only what is their own.
 */
#ifndef TW_EXECUTOR_BASE_H
#define TW_EXECUTOR_BASE_H

#include <errno.h>
#include <stdlib.h>

#include "mpsc/base/atomics.h"
#include "executor/pool/internal.h"
#include "mpsc/base/futex.h"
#include "mpsc/base/assert.h"
#include "mpsc/base/misuse.h"
#include "mpsc/base/entry.h"
#include "tickwheel/context.h"
#include "wheel/core/frame.h"
#include "wheel/run/work.h"

/* ------------------------------------------------------------------------ holds */

struct tw__base {
	tw_service *service;
	tw_executor *executor; /* takes submits from any thread */
	bool pooled;           /* it is a pool's */
	bool left;             /* its holder was destroyed: TW__BASE_LEFT */
};

/*
 * executor NULL: the service's. Returns 0; -ESHUTDOWN if service or pool are closed; -EPERM in a
 * forked child.
 */
TW_PRIVATE int tw__base_hold(struct tw__base *base, tw_service *service, tw_executor *executor);

/* How a holder goes. */
enum tw__base_step {
	/*
	 * Asks whether the thread may wait for other threads that use the service or the executor:
	 * the executor is a pool, the thread is none of its workers, and it is not inside a
	 * callback or work of the service, where it may be the driver.
	 */
	TW__BASE_MAY_WAIT,
	/* The holder was destroyed while its work is out. The service's close waits for it. */
	TW__BASE_LEFT,
	/* No work is out. In a forked child no lock is taken: the pool's may be held forever. */
	TW__BASE_OVER
};

/* The answer of the first step. The holder does not touch the base after the last one. */
TW_PRIVATE bool tw__base_leave(struct tw__base *base, enum tw__base_step step);

/*
 * The work calls no user function any more: if the executor refuses it, or gives it back, the
 * driver runs it. A pool refuses no work.
 */
static inline void tw__base_leave_work(const struct tw__base *base, struct tw__work *work)
{
	if (!base->pooled)
		tw__work_leave_executor(work);
}

#endif
