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

#include "mpsc/base/private.h"
#include "mpsc/base/owner.h"
#include "executor/pool/internal.h"
#include "mpsc/base/futex.h"
#include "mpsc/base/assert.h"
#include "mpsc/base/misuse.h"
#include "mpsc/base/struct_read.h"
#include "tickwheel/context.h"
#include "wheel/run/work.h"

/* --------------------------------------------------- around a user's function */

/* Any function as the name of what runs. It is not called by this type. */
#define TW__NAMED_BY(function) ((tw_fn *)(void (*)(void))(function))

/*
 * What this thread runs, for tw_service_liveness and tw_service_dump. The core has the same as
 * inline functions (wheel/core/user_code.h).
 */
TW_PRIVATE struct tw__run_record *tw__layer_begin(const void *owner, tw_fn *fn, void *arg,
						  const char *name, uint64_t since_ns);
TW_PRIVATE void tw__layer_end(struct tw__run_record *record);
TW_PRIVATE void tw__user_hide_callback(const tw_service *service);

/* ------------------------------------------------------------------------ holds */

struct tw__base {
	tw_service *service;
	tw_executor *executor; /* takes submits from any thread */
	bool left;             /* its holder was destroyed: tw__base_leave */
};

/*
 * executor NULL: the service's. Returns 0; -ESHUTDOWN if service or pool are closed; -EPERM in a
 * forked child.
 */
TW_PRIVATE int tw__base_hold(struct tw__base *base, tw_service *service, tw_executor *executor);

/*
 * Tells whether the thread may wait for other threads that use the service or the executor: the
 * executor is a pool, the thread is none of its workers, and it is not inside a callback or work of
 * the service, where it may be the driver.
 */
TW_PRIVATE bool tw__base_may_wait(const struct tw__base *base);

/*
 * No work is out. The holder does not touch the base afterwards. In a forked child no lock is
 * taken: the pool's may be held forever.
 */
TW_PRIVATE void tw__base_let_go(const struct tw__base *base);

/*
 * The work calls no user function any more: if the executor refuses it, or gives it back, the
 * driver runs it. A pool refuses no work.
 */
TW_PRIVATE void tw__base_leave_work(const struct tw__base *base, struct tw__work *work);

/*
 * The holder was destroyed while its work is out. The service's close waits for it. The holder lets
 * go when the work has returned.
 */
TW_PRIVATE void tw__base_leave(struct tw__base *base);

#endif
