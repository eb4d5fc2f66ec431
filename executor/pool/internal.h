/* The pool as services use it; its public face is tickwheel/pool.h. */
#ifndef TW_EXECUTOR_POOL_H
#define TW_EXECUTOR_POOL_H

#include "tickwheel/pool.h"

struct tw__source;

/*
 * With the workers, max_workers and thread settings of a service's config, which are in range; 0: default.
 * owned: one service makes it for itself. Returns what tw_pool_create returns.
 */
int tw__pool_create(tw_pool **out, uint32_t queue, bool owned, const struct tw_service_config *config);

/* The pool whose public face the executor is, or NULL. */
tw_pool *tw__pool_of(tw_executor *executor);

/*
 * How many blocking runs the executor can hold at a time: the maximum of a pool, through its public face or a
 * service's; 1 for a pinned face. 0: it is none of a pool's, so nobody knows.
 */
unsigned tw__executor_capacity(tw_executor *executor);

/*
 * Whether the calling thread is the only one that ever runs what the executor gets: a pool of one worker, or a pinned face.
 * Compares addresses only: the executor may be gone.
 */
bool tw__pool_needs_caller(const tw_executor *executor);

/*
 * For work that may block: of a pool's public face the one that keeps a worker free of such work; any other executor itself.
 */
tw_executor *tw__pool_jobs_face(tw_executor *executor);

/*
 * A service begins to use the pool: *out is its source, (tw_executor *)*out its executor. owned: the pool ends with it.
 * 0, -ENOMEM, -ESHUTDOWN: the pool is closed.
 */
int tw__pool_join(struct tw__source **out, tw_pool *pool, bool owned);

/*
 * Whether the pool of the source is full: all of max_workers workers are inside runs, or all but one inside jobs of limiters.
 * out->pool_at_max: also, runs wait that need such a worker. *progress changes with each run that begins or ends.
 */
bool tw__source_is_busy(void *source, struct tw_liveness *out, uint64_t *progress);

/* The face that the service hands over to. */
tw_executor *tw__source_executor(struct tw__source *source);

/* The service looks at the pool's own tasks from now on: until tw__pool_unwatch, which comes before it leaves. */
void tw__pool_watch(struct tw__source *source, tw_service *service);
void tw__pool_unwatch(tw_service *service);

/* The service is settled: nothing of it is queued or runs. Destroys the pool if it was the service's own. NULL does nothing. */
void tw__pool_leave(struct tw__source *source);

/* Something that is no service begins to run work on the pool, which refuses to close until it lets go. 0, -ESHUTDOWN, -EPERM. */
int tw__pool_hold(tw_pool *pool);
void tw__pool_let_go(tw_pool *pool);

/* Which of the pool's faces takes submits from any thread: for a service's own face that of its pool; any other executor is its own. */
tw_executor *tw__shared_executor(tw_executor *executor);

/* A face of the pool whose work runs on one of its threads, always the same; in turn another one. For work alone (wheel/run/work.h). */
tw_executor *tw__pool_pin(tw_pool *pool);

/* In a forked child, where no worker is: frees the pool if it was the service's own. NULL does nothing. */
void tw__pool_leave_forked(struct tw__source *source);

#endif
