/*
 * Executors: who runs what has come due.
 *
 * The tick thread runs no callback itself (unless it is told to, see tw_executor_inline): it hands **batches** of
 * due runs to an executor. A service makes a pool of worker threads of its own by default. A server that has
 * threads or a loop already brings its own executor: a struct that begins with struct tw_executor.
 *
 * Tickets. submit(executor, batch, n) hands over n tickets. The executor calls tw_run_one(batch) or
 * tw_run_return(batch) n times in total, on any threads, in parallel if it likes, during submit or later. The
 * batch's memory belongs to the service; when the n-th of those calls has begun, the pointer may no longer be
 * used. Runs are claimed in order, one for each call, so that a slow callback holds up no other ticket.
 *
 * Quota. A service limits the batches that its executors hold unfinished, and shares that limit among
 * them. An executor that takes batches and runs none gets no more of them after a while. Its further
 * runs wait at the service, in order, and other executors go on.
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

struct tw_executor_ops {
	size_t size; /* sizeof(struct tw_executor_ops); smaller: -EINVAL from tw_service_create, as is submit NULL */

	/*
	 * Take over n tickets of batch (n >= 1). Called by the tick thread, or by whoever drives the service: it must
	 * not block, and not call tw_service_close. 0: taken over. Negative errno: refused, nothing was taken;
	 * the service then does as its config's on_refused says, and counts it.
	 */
	int (*submit)(tw_executor *self, tw_batch *batch, size_t n);
};

struct tw_executor {
	const struct tw_executor_ops *ops;
};

/*
 * Claim the batch's next run and carry it out on this thread, release callback included.
 * 1: a callback was run. 0: it had been cancelled or moved meanwhile, or was not to be run any more (TW_LATE_DROP,
 * TW_REFUSED_DROP); the ticket is used up all the same. Also 0: the ticket is work of a strand, limiter, scheduler, action
 * or semaphore, and this thread is inside a submit that such a layer has called. Then the service's driver submits
 * the work again, so that no user function runs inside the layer's call.
 * -ENOMEM: this thread could not be set up for the service; the ticket is not used up: call again, or drop it. -EINVAL: NULL.
 * -EPERM: in a forked child.
 */
TW_API int tw_run_one(tw_batch *batch);

/* Give the next run back to the service, which hands it over again within a tick or two. Uses up one ticket. NULL: nothing. */
TW_API void tw_run_return(tw_batch *batch);

/*
 * Runs callbacks on the thread that drives the service: the tick thread, or the caller of tw_service_advance. For short
 * callbacks only: a slow one delays every other timer. Never fails; shared by all.
 */
TW_API tw_executor *tw_executor_inline(void);

#ifdef __cplusplus
}
#endif
#endif
