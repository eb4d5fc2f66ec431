/*
 * The pool: worker threads for callbacks and tasks.
 *
 * A service creates a pool of its own unless it is given an executor. A pool that you create can be
 * shared by services (tw_service_config.executor = tw_pool_executor(pool)), and takes tasks of its
 * own.
 *
 * Each worker claims one run at a time, so a slow run holds up only its own thread. There is one
 * queue, first in, first out: the runs that one service hands over, and the tasks that one thread
 * submits, begin in order.
 *
 * Callbacks and tasks may block. If runs wait and no worker has begun one for 2 ms, all workers
 * count as blocked; a run that has lasted 20 ms counts as blocked in any case. While runs wait, the
 * pool keeps `workers` workers that are not blocked: it starts more threads, at most `max_workers`
 * in all.
 *
 *   - A run that waits behind blocked callbacks starts 2 to 5 ms late; behind 63 of them, about 10
 *     ms.
 *   - A thread beyond `workers` ends after 10 s without a run.
 *   - At the maximum, runs wait until a callback returns. tw_pool_stats.at_max counts that.
 *   - If the system refuses a thread, the pool goes on, and tries again while runs wait.
 *   - A blocked callback costs one thread: its stack, and a cache of slots in each service it used.
 *
 * Callbacks may run beside each other as soon as max_workers is above 1. For one thread that runs
 * callbacks one after the other, set workers and max_workers to 1. A pool that may grow has one
 * more thread, which sleeps while no worker is missing.
 *
 * Threads: any thread may call anything at any time; only destroy must be alone, except for a
 * submit that is about to return when its task has told another thread to destroy. In a forked
 * child each call returns -EPERM, and destroy frees the memory.
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

/* Knobs of a pool. 0 is the default of each. */
struct tw_pool_config {
	size_t size;      /* sizeof(struct tw_pool_config); 0 only if all else is 0 too */
	uint32_t workers; /* permanent threads: 1 .. 1024; default: the processors that the
	                          * process may use (affinity, control group) */
	uint32_t queue;   /* tasks that may wait: a power of two, 16 .. 16 Mi; default 65536 */
	const char *thread_name; /* prefix, at most 9 bytes are used; default "tw" */
	size_t stack_size;       /* bytes; 0: as in tw_service_config */
	const void *affinity;    /* a cpu_set_t of affinity_size bytes, copied; NULL: inherited */
	size_t affinity_size;

	/*
	 * The most threads at a time: `workers` .. 1024; default 64, or `workers` if that is more.
	 */
	uint32_t max_workers;
	uint32_t reserved; /* 0 */
};

/*
 * Creates a pool and its threads, which block all signals except those of their own faults.
 *
 * Threads: any. cfg may be NULL.
 * Returns:
 *   0         *out is the pool; on an error *out is not written
 *   -EINVAL   out is NULL; a knob is out of range
 *   -E2BIG    cfg has non-zero bytes beyond the known struct
 *   -ENOMEM   no memory
 *   -EAGAIN, -EPERM   a thread cannot be created; see tw_service_create
 */
TW_API int tw_pool_create(tw_pool **out, const struct tw_pool_config *cfg);

/*
 * Returns the pool as an executor, for services and for single timers. It lives as long as the
 * pool.
 *
 * Timers, strands and the like wait in the same queue as tasks. They find room also if the queue is
 * full of tasks. If thousands of them wait, those beyond come a tick later.
 *
 * Threads: any.
 * Returns: the executor; NULL if pool is NULL.
 */
TW_API tw_executor *tw_pool_executor(tw_pool *pool);

/*
 * Submits a task: fn(arg) runs once on one of the workers. fn sees what the caller wrote before.
 *
 * Threads: any. Never blocks.
 * Returns:
 *   0            fn will be called
 *   -EAGAIN      the queue is full: try again, use tw_pool_submit_wait, or raise `queue`
 *   -ESHUTDOWN   the pool is closed
 *   -EINVAL      pool or fn is NULL
 *   -EPERM       in a forked child
 * After an error fn is not called.
 */
TW_API int tw_pool_submit(tw_pool *pool, tw_fn *fn, void *arg);

/*
 * Submits a task, and waits for room while the queue is full.
 *
 * Threads: any. Blocks at most timeout_ns (TW_FOREVER: without limit).
 * Returns: as tw_pool_submit, and
 *   -ETIMEDOUT   the queue was full all the time
 *   -EDEADLK     the queue is full, and the caller is one of the pool's workers
 *   -EAGAIN      the queue is full, and timeout_ns is 0
 */
TW_API int tw_pool_submit_wait(tw_pool *pool, tw_fn *fn, void *arg, uint64_t timeout_ns);

/* Called for each task that a close drops, on the closing thread. */
typedef void tw_pool_dropped_fn(void *told_arg, tw_fn *fn, void *arg);

/*
 * Refuses new tasks, ends the old ones, and ends the threads.
 *
 * TW_CLOSE_DROP drops the tasks that have not begun, and calls `told` (may be NULL) for each. The
 * other modes run them first. A second close waits for the first.
 *
 * Threads: any. Blocks until the tasks that run, or are to run, have returned.
 * Returns:
 *   0          closed: no task runs, and the threads have ended
 *   -EINVAL    pool is NULL; an unknown mode
 *   -EBUSY     the pool is the executor of a service; nothing changed: close the service first. A
 *              service that names it for single timers is not counted: the pool must outlive that
 *              one
 *   -EDEADLK   called by one of its workers, or from `told`; nothing changed
 *   -EPERM     in a forked child
 */
TW_API int tw_pool_close(tw_pool *pool, enum tw_close_mode mode, tw_pool_dropped_fn *told,
			 void *told_arg);

/*
 * Closes the pool with TW_CLOSE_DRAIN if need be, and frees it. NULL is allowed.
 *
 * Threads: any, with no other call on the pool at the same time. Blocks until the tasks that run,
 * or are to run, have returned. In a forked child it frees memory, and waits for nothing; -EBUSY is
 * as here.
 * Returns:
 *   0          freed; or pool is NULL
 *   -EBUSY     the pool is the executor of a service, or of a strand or the like; nothing changed:
 *              close the service, or destroy the strand first
 *   -EDEADLK   called by one of its workers, or from the `told` of its close; nothing changed
 */
TW_API int tw_pool_destroy(tw_pool *pool);

/* Gauges and counters of a pool. */
struct tw_pool_stats {
	size_t size; /* in: sizeof(struct tw_pool_stats) */
	/* threads now: between the config's `workers` and `max_workers`, 0 after a close */
	uint64_t workers;
	uint64_t services;  /* services whose executor it is */
	uint64_t queued;    /* tasks, batches of due timers, and strands and the like that wait */
	uint64_t running;   /* workers inside a run */
	uint64_t completed; /* tasks that have returned */
	uint64_t rejected;  /* submits that returned -EAGAIN, -ETIMEDOUT or -EDEADLK */
	uint64_t dropped;   /* by tw_pool_close */
	struct tw_latency wait; /* of tasks, submit to start; one in 16 is timed */
	struct tw_latency run;  /* of the same tasks: how long they ran */
	uint64_t grown;         /* threads started beyond the config's `workers` */
	/* times that runs waited while all max_workers were blocked; 0 if it cannot grow */
	uint64_t at_max;
	uint64_t start_failures; /* threads that could not be started */
};

/*
 * Reads a pool's statistics. Takes a short lock.
 *
 * Threads: any. Never blocks.
 * Returns:
 *   0         *out is filled
 *   -EINVAL   NULL, or out->size is smaller than one gauge
 *   -ENOMEM   no memory
 *   -EPERM    in a forked child
 */
TW_API int tw_pool_stats(tw_pool *pool, struct tw_pool_stats *out);

/*
 * Reads the statistics of the pool that runs a service's callbacks, its own or a shared one.
 *
 * Threads: any. Never blocks.
 * Returns: as tw_pool_stats, and
 *   -ENOENT   the service's executor is no pool, or the service is closed
 */
TW_API int tw_service_pool_stats(tw_service *service, struct tw_pool_stats *out);

#ifdef __cplusplus
}
#pragma GCC diagnostic pop
#endif
#endif
