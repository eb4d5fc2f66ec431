/*
 * Strands: serial executors, many and cheap, on a pool or any other executor.
 *
 * A strand runs its tasks one at a time, in order, so they need no lock. Use one for each
 * connection, actor or session.
 *
 *     tw_strand *strand;
 *     tw_strand_create(&strand, service, NULL);
 *     tw_strand_submit(strand, on_read, connection);
 *     tw_strand_schedule(strand, 30 * TW_SECOND, on_timeout, connection, &timeout);
 *
 * Order. Submitted tasks run in the order of their submits, and so do tasks with equal delays. A
 * delayed task enters the queue when it is due. Tasks, series, releases on the strand, and timers
 * that name the strand as their executor never overlap. A task sees what the one before it has
 * written.
 *
 * Fairness. A strand keeps its thread for at most 64 runs and 5 ms; then other work of the executor
 * gets its turn. The 5 ms count from the first task that has another one behind it when it begins.
 *
 * Time. A delay counts from the call, on the service's clock. A task never runs early. Its lateness
 * is that of a timer (G2) plus a hand-over, and does not depend on the workers of the service's
 * executor.
 *
 * Context. A task and its release run under the context of the call that submitted it (context.h).
 *
 * Lifetime. Destroy a strand before its service is closed (-EBUSY until then). A strand holds its
 * pool; any other executor must outlive it.
 *
 * Memory. A task that has ended leaves none in use: 2048 free nodes are kept, the rest goes back to
 * the system while the service lives.
 *
 * Threads: any thread may call anything at any time, also the strand's own tasks; only
 * tw_strand_destroy must be alone, with one exception: a task may destroy its own strand while
 * other threads wait for that task in a cancel or a close.
 *
 * All functions return -EINVAL if strand is NULL (except destroy), and -EPERM in a forked child,
 * where destroy frees memory.
 */
#ifndef TICKWHEEL_STRAND_H
#define TICKWHEEL_STRAND_H

#include <stddef.h>
#include <stdint.h>

#include "executor.h"
#include "service.h"
#include "version.h"

#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a struct and a function have one name */
extern "C" {
#endif

typedef struct tw_strand tw_strand;

/* Handle of a task: a value. All-zero is "no task"; a stale handle is harmless. */
typedef struct tw_strand_task_id {
	uint64_t id;
} tw_strand_task_id;

/*
 * Creates a strand on an executor: a pool's, another strand's, one of your own, or NULL for the
 * service's.
 *
 * An executor of your own gets submits from any thread. For one thread, use a pool with one worker.
 *
 * Threads: any. Never blocks.
 * Returns:
 *   0            *out is the strand; on an error *out is not written
 *   -EINVAL      out or service is NULL; an executor whose ops are incomplete
 *   -ENOMEM      no memory
 *   -ESHUTDOWN   the service or the pool is closed
 *   -EPERM       in a forked child
 */
TW_API int tw_strand_create(tw_strand **out, tw_service *service, tw_executor *executor);

/* -------------------------------------------------------------------- submit */

/*
 * Submits a task: fn(arg) runs once, on the strand.
 *
 * fn never runs inside the call, whatever the executor does. So a chain of submits needs no stack.
 * fn sees what the caller wrote before.
 *
 * Threads: any. Never blocks.
 * Returns:
 *   0            fn will run; on an error nothing was submitted
 *   -EINVAL      strand or fn is NULL
 *   -ESHUTDOWN   the strand is closed
 *   -EAGAIN      2^28 tasks wait: try again
 *   -ENOMEM      no memory
 *   -EPERM       in a forked child
 */
TW_API int tw_strand_submit(tw_strand *strand, tw_fn *fn, void *arg);

/*
 * Schedules a task that runs once, after delay_ns. A delay of 0 submits it. tw_strand_submit_task
 * schedules a series.
 *
 * *out (may be NULL) is written before the task is published, so the task may read it. On an error
 * it is "no task" (untouched after -EINVAL and -E2BIG).
 *
 * Threads: any. Never blocks.
 * Returns: as tw_strand_submit, and
 *   -ERANGE   the delay is above TW_MAX_DELAY_NS, or ends more than that after the service's start
 *   -EAGAIN   the service has no room for a timer: raise max_timers, or try again
 */
TW_API int tw_strand_schedule(tw_strand *strand, uint64_t delay_ns, tw_fn *fn, void *arg,
			      tw_strand_task_id *out);

/* A task in full. Members that are 0 are not used. */
struct tw_strand_task {
	size_t size; /* sizeof(struct tw_strand_task) */
	tw_fn *fn;
	void *arg;
	uint64_t delay_ns; /* with TW_TASK_AT: a deadline on tw_service_now()'s scale */
	uint32_t flags;    /* TW_TASK_AT, TW_TASK_CONTEXT */
	uint32_t reserved; /* 0 */

	/*
	 * NULL: it runs once; else a series, as of timers (task.h), with their missed policies.
	 * Read during the call. delay_ns is 0 without TW_TASK_AT, and first_ns with it. A run
	 * begins when its turn on the strand has come.
	 */
	const struct tw_period *period;

	/*
	 * Called once when the task has ended, after its last run. TW_FATE_FIRED: on the strand.
	 * TW_FATE_CANCELLED: on the thread that cancelled the task or closed the strand; on the
	 * strand if a run of the series was under way, or the task's turn came during the close.
	 */
	tw_release_fn *release;

	void *context;    /* with TW_TASK_CONTEXT, as in struct tw_task */
	const char *name; /* for tw_service_dump and _liveness; not copied: a static string */
};

/*
 * Submits a task, or a series, in full.
 *
 * Threads: any. Never blocks.
 * Returns: as tw_strand_schedule, and
 *   -EINVAL   task is NULL, its size too small, or its members do not go together: the misuse hook
 *             gets the reason
 *   -ERANGE   a period or deadline is out of range
 *   -E2BIG    non-zero bytes beyond the known struct
 */
TW_API int tw_strand_submit_task(tw_strand *strand, const struct tw_strand_task *task,
				 tw_strand_task_id *out);

/* -------------------------------------------------------------------- cancel */

/*
 * Cancels a task.
 *
 * Threads: any. Never blocks.
 * Calls: the task's release, on this thread, if the result is TW_CANCELLED.
 * Returns:
 *   TW_CANCELLED   the task will not run (again). arg is yours, unless the task has a release
 *   TW_RUNNING     the task or its release runs now. A series ends after this run
 *   TW_GONE        the task has ended, or never was one of this strand
 *   -EINVAL        strand is NULL
 *   -EPERM         in a forked child
 */
TW_API int tw_strand_cancel(tw_strand *strand, tw_strand_task_id task);

/*
 * Cancels a task, and waits for it if it runs.
 *
 * After any result except TW_RUNNING and TW_SELF nothing of the task runs, and what it wrote is
 * visible.
 *
 * Threads: any. Blocks at most timeout_ns.
 * Calls: as tw_strand_cancel.
 * Returns: as tw_strand_cancel, and
 *   TW_FINISHED    the task was running, and has returned
 *   TW_RUNNING     it still runs after timeout_ns
 *   TW_SELF        the caller is the task itself, or its release
 */
TW_API int tw_strand_cancel_wait(tw_strand *strand, tw_strand_task_id task, uint64_t timeout_ns);

/* --------------------------------------------------------------------- close */

/*
 * Closes the strand: cancels all tasks that have not run, refuses new ones, and waits for its
 * running task and for releases that other threads call.
 *
 * A running task goes on; no other one begins after the call. Timers that name the strand as their
 * executor end as cancelled when they are due. A second close only waits. The call works in pieces,
 * so other calls on the strand wait for microseconds only.
 *
 * What other objects hand to the strand as their executor still runs, also after the result 0.
 * These are jobs of a limiter, turns of a scheduler, functions of a semaphore, tasks of another
 * strand, and an ASAP scheduler's immediates and actions without a delay.
 *
 * Threads: any. Blocks at most timeout_ns, plus the releases. With a timeout of 0 it never waits,
 * and a task may close its own strand.
 * Calls: releases of the cancelled tasks, on this thread, in any order.
 * Returns:
 *   0            closed: no task, timer or release of the strand runs
 *   -ETIMEDOUT   closed, and something still runs: the caller itself, or another thread's task
 *   -EDEADLK     called with a timeout from the strand's own task or release; nothing changed
 *   -EINVAL      strand is NULL
 *   -EPERM       in a forked child
 */
TW_API int tw_strand_close(tw_strand *strand, uint64_t timeout_ns);

/*
 * Closes the strand, and frees it. NULL is allowed. A task may destroy its own strand.
 *
 * On a pool the call waits until what runs on the strand has returned, and the strand is gone then.
 * It does not wait if the caller is one of the pool's workers, or inside a callback or task of the
 * service, or if the executor is not a pool's. Then the strand goes after its last run or
 * hand-over; tw_service_close waits for that, and tw_pool_close of another pool returns -EBUSY
 * until then.
 *
 * An executor that refuses without end does not hold up the service: after destroy, the driver does
 * the rest. If tw_strand_executor was called, 192 bytes stay until the service is destroyed.
 *
 * Threads: any, with no other call beside it. A task may destroy its own strand while other threads
 * wait for that task in a cancel or a close. Blocks without limit while a task runs, but only on a
 * pool, as said above.
 * Calls: as tw_strand_close.
 * Returns: 0
 */
TW_API int tw_strand_destroy(tw_strand *strand);

/* --------------------------------------------------------------------- looks */

/*
 * Returns the strand whose task or timer the calling thread runs, the innermost of several.
 *
 * Threads: any. Never blocks.
 * Returns: the strand; NULL if the thread runs none.
 */
TW_API tw_strand *tw_strand_current(void);

/*
 * Returns the strand as an executor, of single timers (tw_task.executor) or of other strands.
 *
 * Timers of the strand's own service may outlive the strand: they end as cancelled when they are
 * due. Timers of other services must have ended before tw_strand_destroy.
 *
 * Threads: any.
 * Returns: the executor; NULL if strand is NULL.
 */
TW_API tw_executor *tw_strand_executor(tw_strand *strand);

/* Gauges and counters of a strand. */
struct tw_strand_stats {
	size_t size;        /* in: sizeof(struct tw_strand_stats) */
	uint64_t queued;    /* tasks that are due and wait */
	uint64_t delayed;   /* tasks that are not due yet */
	uint64_t running;   /* 0 or 1 */
	uint64_t runs;      /* tasks and timers that have returned; each run of a series counts */
	uint64_t cancelled; /* tasks, by a cancel or a close */
	uint64_t closed;    /* 1: the strand is closed */
};

/*
 * Reads a strand's statistics.
 *
 * Threads: any. Never blocks.
 * Returns:
 *   0         *out is filled
 *   -EINVAL   strand or out is NULL, or out->size is smaller than one gauge
 *   -EPERM    in a forked child
 */
TW_API int tw_strand_stats(tw_strand *strand, struct tw_strand_stats *out);

#ifdef __cplusplus
}
#pragma GCC diagnostic pop
#endif
#endif
