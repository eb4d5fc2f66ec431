/*
 * The pool: worker threads for callbacks and tasks. A service creates one of its own unless it is
 * given an executor. Services can share one that you create.
 *
 * Each worker claims one run at a time, from one queue, first in, first out. Callbacks and tasks
 * may block: while runs wait, the pool keeps `workers` workers that are not blocked, with at most
 * `max_workers` threads in all. tickwheel_pool(7) says when it grows.
 */
#ifndef TICKWHEEL_POOL_H
#define TICKWHEEL_POOL_H

#include <stddef.h>
#include <stdint.h>

#include "executor.h"
#include "service.h"
#include "stats.h"
#include "version.h"

#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a struct and a function have one name */
extern "C" {
#endif

typedef struct tw_pool tw_pool;

/* Knobs of a pool. */
struct tw_pool_config {
	size_t size;
	uint32_t workers; /* permanent threads: 1 .. 1024; default: as in tw_service_config */
	uint32_t queue;   /* tasks that may wait: a power of two, 16 .. 16 Mi; default 65536 */
	const char *thread_name; /* this and what follows: as in tw_service_config */
	size_t stack_size;
	const void *affinity;
	size_t affinity_size;

	uint32_t max_workers; /* `workers` .. 1024; default 64, or `workers` if that is more */
	uint32_t reserved;
};

/*
 * Creates a pool and its threads. cfg may be NULL.
 *
 * Returns:
 *   0         *out is the pool
 *   -EINVAL   a knob is out of range
 *   -ENOMEM   no memory
 *   -EAGAIN, -EPERM   a thread cannot be created; see tw_service_create
 */
TW_API int tw_pool_create(tw_pool **out, const struct tw_pool_config *cfg);

/*
 * Returns the pool as an executor, for services and for single timers. If the queue is full,
 * strands and the like wait, and timers are offered again in the next tick.
 *
 * Returns: the executor; NULL if pool is NULL.
 */
TW_API tw_executor *tw_pool_executor(tw_pool *pool);

/*
 * Submits a task: fn(arg) runs once on one of the workers.
 *
 * Returns:
 *   0            fn will be called
 *   -EAGAIN      the queue is full: try again, use tw_pool_submit_wait, or raise `queue`
 *   -ENOMEM      no memory; only in a thread's first submit
 *   -ESHUTDOWN   the pool is closed
 */
TW_API int tw_pool_submit(tw_pool *pool, tw_fn *fn, void *arg);

/*
 * Submits a task, and waits for room while the queue is full.
 *
 * Blocks: at most timeout_ns.
 * Returns:
 *   0            fn will be called
 *   -EAGAIN      the queue is full, and timeout_ns is 0
 *   -ENOMEM      no memory; only in a thread's first submit
 *   -ESHUTDOWN   the pool is closed
 *   -ETIMEDOUT   the queue was full all the time
 *   -EDEADLK     the queue is full, and the caller is one of the pool's workers
 */
TW_API int tw_pool_submit_wait(tw_pool *pool, tw_fn *fn, void *arg, uint64_t timeout_ns);

/* Called for each task that a close drops, on the closing thread, which it may block. */
typedef void tw_pool_dropped_fn(void *told_arg, tw_fn *fn, void *arg);

/*
 * Refuses new tasks, ends the old ones, and ends the threads.
 *
 * TW_CLOSE_DROP drops the tasks that have not begun, and calls `told` (may be NULL) for each. The
 * other modes run them first. A second close waits for the first.
 *
 * Blocks: until the tasks that run, or are to run, have returned.
 * Returns:
 *   0          closed: no task runs, and the threads have ended
 *   -EINVAL    an unknown mode
 *   -EBUSY     it is the executor of a service, a strand or the like: destroy that first. A
 *              service that names it for single timers does not count: it must outlive that service
 *   -EDEADLK   called by one of its workers, or from `told`
 */
TW_API int tw_pool_close(tw_pool *pool, enum tw_close_mode mode, tw_pool_dropped_fn *told,
			 void *told_arg);

/*
 * Closes the pool with TW_CLOSE_DRAIN if need be, and frees it. NULL is allowed.
 *
 * Threads: any, with no other call on the pool; a submit whose task led to this may be returning.
 * In a forked child it waits for nothing.
 * Blocks: until the tasks that run, or are to run, have returned.
 * Returns:
 *   0          freed; or pool is NULL
 *   -EBUSY     it is the executor of a service, a strand or the like: destroy that first
 *   -EDEADLK   called by one of its workers, or from the `told` of its close
 */
TW_API int tw_pool_destroy(tw_pool *pool);

/* Gauges and counters of a pool. */
struct tw_pool_stats {
	size_t size;
	uint64_t workers;   /* threads now; 0 after a close */
	uint64_t services;  /* services whose executor it is */
	uint64_t queued;    /* tasks, batches of due timers, and strands and the like that wait */
	uint64_t running;   /* workers inside a run */
	uint64_t completed; /* tasks that have returned */
	uint64_t rejected;  /* submits that returned an error but -ESHUTDOWN */
	uint64_t dropped;   /* by tw_pool_close */
	struct tw_latency wait;  /* of tasks, submit to start; one in 16 is timed */
	struct tw_latency run;   /* of the same tasks: how long they ran */
	uint64_t grown;          /* threads started beyond the config's `workers` */
	uint64_t at_max;         /* times that runs waited while all max_workers were blocked */
	uint64_t start_failures; /* threads that could not be started */
};

/*
 * Reads a pool's statistics. Takes a short lock.
 *
 * Returns:
 *   0         *out is filled
 *   -EINVAL   out->size is smaller than one gauge
 *   -ENOMEM   no memory
 */
TW_API int tw_pool_stats(tw_pool *pool, struct tw_pool_stats *out);

/*
 * Reads the statistics of the pool that runs a service's callbacks, its own or a shared one.
 *
 * Returns: as tw_pool_stats, and
 *   -ENOENT   the service's executor is no pool, or the service is closed
 */
TW_API int tw_service_pool_stats(tw_service *service, struct tw_pool_stats *out);

#ifdef __cplusplus
}
#pragma GCC diagnostic pop
#endif
#endif
