/*
 * Executors run the callbacks of expired timers. To run them on your threads or in your loop, make
 * a struct that begins with tw_executor.
 *
 * The driver (the tick thread, or the caller of tw_service_advance) hands over batches:
 * submit(executor, batch, n) brings n runs, and a ticket for each.
 * Each call of tw_run_one or tw_run_return uses up one, on any thread, at any time, also inside
 * submit. The runs are claimed in order, one for each call. When the n-th of these calls has begun,
 * do not touch the batch: it belongs to the service.
 *
 * An executor may refuse a batch. Its runs wait at the service, which offers them again in the next
 * tick, in order. They can be cancelled and moved meanwhile, and other executors go on.
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
	size_t size;

	/*
	 * Takes n >= 1 tickets of a batch (0), or refuses (a negative errno). To hand a batch on to
	 * another executor, pass all tickets that are left. Called by the driver and by layers: it
	 * must not block, and must not close the service.
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
 * Blocks: if the callback does.
 * Returns:
 *   1         a callback ran
 *   0         none ran: the timer was cancelled or moved; or this is a layer's work inside a submit
 *             of a layer, which the driver submits again
 *   -ENOMEM   no memory for this thread's first run; the ticket is not used up: call again, or
 *             return it
 */
TW_API int tw_run_one(tw_batch *batch);

/*
 * Gives the next run of a batch back to the service, which hands it over again within 2 ticks. Uses
 * up one ticket. NULL does nothing.
 */
TW_API void tw_run_return(tw_batch *batch);

/*
 * Returns the executor that runs callbacks on the driver. For short callbacks only: each one delays
 * all other timers. It never refuses, and is shared by all.
 *
 * Returns: the executor, which always exists.
 */
TW_API tw_executor *tw_executor_inline(void);

#ifdef __cplusplus
}
#endif
#endif
