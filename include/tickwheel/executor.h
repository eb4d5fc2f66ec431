/*
 * Executors: what runs the callbacks that are due.
 *
 * The driver hands batches of due runs to an executor, by default a pool of the service's own. A
 * program that has threads or a loop already brings its own: a struct that begins with tw_executor.
 *
 * A batch of n runs comes with n tickets: submit(executor, batch, n). The executor calls tw_run_one
 * or tw_run_return n times in all, on any threads, at any time, also inside submit. The runs are
 * claimed in order, one for each call. The batch belongs to the service: when the n-th of these
 * calls has begun, do not touch the batch.
 *
 * An executor may refuse a batch. Its runs wait at the service, which offers them again in the next
 * tick, in order. They can be cancelled and moved meanwhile, and other executors go on. The same
 * holds for an executor that keeps its batches: after a while it gets no more of them.
 *
 * A run that has waited for its executor for 2^26 ticks (18.6 hours at 1 ms) may then wait up to
 * 2^25 ticks more, and tw_remaining tells that time. The run is late, never early.
 */
#ifndef TICKWHEEL_EXECUTOR_H
#define TICKWHEEL_EXECUTOR_H

#include <stddef.h>

#include "version.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_batch tw_batch;
typedef struct tw_executor tw_executor;

/* What an executor does. */
struct tw_executor_ops {
	size_t size; /* sizeof(struct tw_executor_ops) */

	/*
	 * Takes n tickets of a batch, n >= 1. Called by the driver, and by calls of strands and
	 * other layers: it must not block, and must not close the service. 0: taken. A negative
	 * errno: refused, nothing was taken; the service offers the batch again.
	 */
	int (*submit)(tw_executor *self, tw_batch *batch, size_t n);
};

/* The base of an executor: the first member of a struct of your own. */
struct tw_executor {
	const struct tw_executor_ops *ops;
};

/*
 * Claims the next run of a batch and carries it out on this thread, with its release. Uses up one
 * ticket.
 *
 * Threads: any. Blocks if the callback does.
 * Returns:
 *   1         a callback ran
 *   0         none ran: the timer was cancelled or moved, or was too late; or the ticket is work of
 *             a strand or other layer, and this thread is inside a submit that such a layer has
 *             called: the driver submits the work again
 *   -ENOMEM   this thread could not be set up for the service; the ticket is not used up: call
 *             again, or return it
 *   -EINVAL   batch is NULL
 *   -EPERM    in a forked child
 */
TW_API int tw_run_one(tw_batch *batch);

/*
 * Gives the next run of a batch back to the service, which hands it over again within 2 ticks. Uses
 * up one ticket. NULL does nothing.
 *
 * Threads: any. Never blocks.
 */
TW_API void tw_run_return(tw_batch *batch);

/*
 * Returns the executor that runs callbacks on the driver: the tick thread, or the caller of
 * tw_service_advance.
 *
 * For short callbacks only: each one delays all other timers. It never refuses, and is shared by
 * all.
 *
 * Threads: any. Never fails.
 * Returns: the executor, which always exists.
 */
TW_API tw_executor *tw_executor_inline(void);

#ifdef __cplusplus
}
#endif
#endif
