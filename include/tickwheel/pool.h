/*
 * The pool: worker threads for callbacks and plain tasks.
 *
 * A service makes a pool of its own unless it is given an executor. A pool made here can be shared by many services
 * (tw_service_config.executor = tw_pool_executor(pool)) and takes plain tasks besides.
 *
 * Runs are claimed one at a time, so a slow one holds up nothing but its own thread while another worker is free. What one
 * service hands over, and what one thread submits, is begun in that order; timers and plain tasks take turns.
 *
 * Blocking. Callbacks and tasks may block. A run that has lasted 2 ms blocks its worker. While runs wait, the pool keeps
 * `workers` workers that are not blocked: it starts more threads, at most `max_workers` in all.
 *   - A run that waits behind blocked callbacks starts about 2 ms late. Behind 63 of them it starts about
 *     8 ms late on 2 idle processors, and later on busy ones: the pool creates the threads in several steps.
 *   - A callback that computes all the time counts as blocked after 20 ms.
 *   - A thread beyond `workers` ends after 10 s without a run.
 *   - At the maximum, runs wait until a callback returns. tw_pool_stats.at_max counts that.
 *   - If the system refuses a thread, the pool goes on with those it has, and tries again while runs wait.
 *   - A blocking callback costs one thread: its stack, and a cache of free timer slots in each service it has used.
 * Callbacks may run beside each other as soon as max_workers is above 1, also with workers 1. For one thread that runs
 * callbacks one after the other, set both to 1. A pool that may grow has one thread more, which sleeps while no worker is missing.
 *
 * Threads: any thread may call anything at any time, but destroy, which must be alone. The exception: a submit that has
 * queued its task may be about to return when another thread, which the task has told, destroys the pool. Tasks may submit tasks. In a forked child
 * all calls that can fail answer -EPERM, but destroy, which frees the memory.
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
extern "C" {
#endif

typedef struct tw_pool tw_pool;

/* Zero means default for each knob. */
struct tw_pool_config {
	size_t size;             /* sizeof(struct tw_pool_config); 0 only if all else is 0 too */
	uint32_t workers;        /* threads that are kept; 1 .. 1024; default: CPUs the process may use
	                          * (affinity, and CPU quota of its control groups), at most max_workers */
	uint32_t queue;          /* plain tasks that may wait; power of two, 16 .. 16 Mi; default 65536 */
	const char *thread_name; /* prefix, at most 9 bytes are used; default "tw" */
	size_t stack_size;       /* bytes; 0: the system's default */
	const void *affinity;    /* a cpu_set_t of affinity_size bytes, read during the call; NULL: inherited */
	size_t affinity_size;

	/* Most threads at a time; `workers` .. 1024. Default: 64, or `workers` if that is more. */
	uint32_t max_workers;
	uint32_t reserved; /* 0 */
};

/*
 * Makes a pool and its threads, which block all signals but those that report their own faults. cfg may be NULL. *out is
 * written on success only. -EINVAL: out NULL, a knob out of range. -E2BIG, as for services. -ENOMEM; -EAGAIN or -EPERM: a
 * thread could not be made. Whatever fails, nothing is left behind.
 */
TW_API int tw_pool_create(tw_pool **out, const struct tw_pool_config *cfg);

/*
 * The pool as an executor, of services (tw_service_config) or of single timers (tw_task); lives as long as the pool. NULL if pool is. What
 * single timers hand over shares the plain tasks' queue and bound.
 */
TW_API tw_executor *tw_pool_executor(tw_pool *pool);

/*
 * Submits a task: fn(arg) runs once on one of the workers. fn sees what the caller wrote before.
 *
 * Threads: any. Never blocks.
 * Returns:
 *   0            fn will be called
 *   -EAGAIN      the queue is full
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

/* Told of each task that is dropped, on the thread that closes. */
typedef void tw_pool_dropped_fn(void *told_arg, tw_fn *fn, void *arg);

/*
 * Refuses new tasks, ends the old ones, and ends the threads.
 *
 * TW_CLOSE_DROP drops the tasks that have not begun, and calls `told` (may be NULL) for each. The other modes run them first.
 * A second close waits for the first.
 *
 * Threads: any. Blocks until the tasks that run, or are to run, have returned.
 * Returns:
 *   0          closed: no task runs, and the threads have ended
 *   -EINVAL    pool is NULL; an unknown mode
 *   -EBUSY     the pool is the executor of a service; nothing changed. A service that names it for single timers is not
 *              counted: the pool must outlive that one
 *   -EDEADLK   called by one of its workers; nothing changed
 *   -EPERM     in a forked child
 */
TW_API int tw_pool_close(tw_pool *pool, enum tw_close_mode mode, tw_pool_dropped_fn *told, void *told_arg);

/* Closes with TW_CLOSE_DRAIN if need be, and frees. NULL is allowed. Errors as tw_pool_close; nothing is freed then. */
TW_API int tw_pool_destroy(tw_pool *pool);

/* Whether the calling thread is one of the pool's workers. */
TW_API bool tw_pool_is_worker(const tw_pool *pool);

struct tw_pool_stats {
	size_t size;       /* in: sizeof(struct tw_pool_stats) */
	uint64_t workers;  /* threads now; between the config's `workers` and `max_workers` */
	uint64_t services; /* whose executor it is */
	uint64_t
	    queued; /* what waits: plain tasks, batches of due timers that nobody has begun, strands and the like that have work */
	uint64_t running;        /* workers inside a callback, a task, or the work of a strand and the like */
	uint64_t completed;      /* plain tasks that have returned (the timers' runs are in tw_service_stats) */
	uint64_t rejected;       /* submits answered -EAGAIN, -ETIMEDOUT or -EDEADLK */
	uint64_t dropped;        /* by tw_pool_close */
	struct tw_latency wait;  /* of plain tasks, submit to start; one in 16 of each submitting thread's is timed */
	struct tw_latency run;   /* of these, their duration */
	uint64_t grown;          /* threads started beyond the config's `workers` */
	uint64_t at_max;         /* times that runs waited for a blocked pool that was at its maximum */
	uint64_t start_failures; /* threads that could not be started */
};

/* A snapshot; any thread. Counts the strands and the like that wait one by one, under a short lock. -EINVAL: NULL, or size smaller than one gauge. -ENOMEM. */
TW_API int tw_pool_stats(tw_pool *pool, struct tw_pool_stats *out);

/*
 * The same of the pool that a service runs its callbacks on, its own one or a shared one.
 *
 * Threads: any. Never blocks.
 * Returns:
 *   0          *out is filled
 *   -EINVAL    service or out is NULL, or out->size is smaller than one gauge
 *   -ENOENT    the service's executor is no pool, or the service is closed
 *   -ENOMEM    no memory
 *   -EPERM     in a forked child
 */
TW_API int tw_service_pool_stats(tw_service *service, struct tw_pool_stats *out);

#ifdef __cplusplus
}
#endif
#endif
