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

#include "mpsc/base/owner.h"
#include "executor/pool/internal.h"
#include "mpsc/base/futex.h"
#include "mpsc/base/locked.h"
#include "mpsc/base/misuse.h"
#include "mpsc/base/struct_read.h"
#include "wheel/core/context.h"
#include "wheel/core/user_code.h"
#include "wheel/run/work.h"

struct tw__base {
	tw_service *service;
	tw_executor *executor; /* takes submits from any thread */
	bool left;             /* its holder was destroyed: tw__base_leave */
};

/*
 * executor NULL: the service's. Returns 0; -ESHUTDOWN if service or pool are closed; -EPERM in a
 * forked child.
 */
int tw__base_hold(struct tw__base *base, tw_service *service, tw_executor *executor);

/*
 * Tells whether the thread may wait for other threads that use the service or the executor: it is
 * none of the pool's workers, and not inside a callback or work of the service, where it may be the
 * driver.
 */
bool tw__base_may_wait(const struct tw__base *base);

/* No work is out. The holder does not touch the base afterwards. */
void tw__base_let_go(const struct tw__base *base);

/* The same in a forked child, where the pool's lock may be held forever. */
void tw__base_let_go_forked(const struct tw__base *base);

/*
 * The work calls no user function any more: if the executor refuses it, or gives it back, the
 * driver runs it. A pool refuses no work.
 */
void tw__base_leave_work(const struct tw__base *base, struct tw__work *work);

/*
 * The holder was destroyed while its work is out. The service's close waits for it. The holder lets
 * go when the work has returned.
 */
void tw__base_leave(struct tw__base *base);

#endif
