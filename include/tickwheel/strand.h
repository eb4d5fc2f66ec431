/*
 * Strands: cheap serial executors on any other executor. A strand runs its tasks one at a time, in
 * order, so they need no lock. Use one for each connection, actor or session.
 *
 *     tw_strand *strand;
 *     tw_strand_create(&strand, service, NULL);
 *     tw_strand_submit(strand, on_read, connection);
 *     tw_strand_schedule(strand, 30 * TW_SECOND, on_timeout, connection, &timeout);
 *
 * Destroy a strand before its service is closed (-EBUSY until then). tickwheel_strand(7) has order,
 * fairness and lifetime.
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
 * Creates a strand on an executor; NULL: the service's. One of your own gets submits from any
 * thread.
 *
 * Returns:
 *   0            *out is the strand
 *   -EINVAL      an executor whose ops are incomplete
 *   -ENOMEM      no memory
 *   -ESHUTDOWN   the service or the pool is closed
 */
TW_API int tw_strand_create(tw_strand **out, tw_service *service, tw_executor *executor);

/* -------------------------------------------------------------------- submit */

/*
 * Submits a task: fn(arg) runs once, on the strand, and never inside this call.
 *
 * Returns:
 *   0            fn will run
 *   -ESHUTDOWN   the strand is closed
 *   -EAGAIN      2^28 tasks and functions of the service's strands and semaphores wait: try again
 *   -ENOMEM      no memory
 */
TW_API int tw_strand_submit(tw_strand *strand, tw_fn *fn, void *arg);

/*
 * Schedules a task that runs once, after delay_ns. A delay of 0 submits it.
 *
 * *out (may be NULL) is written before the task is published, so the task may read it. After an
 * error except -EINVAL and -E2BIG it is 0: "no task".
 *
 * Returns: as tw_strand_submit, and
 *   -ERANGE   the delay is above TW_MAX_DELAY_NS, or ends more than that after the service's start
 *   -EAGAIN   the service has no room for a timer: raise max_timers, or try again
 */
TW_API int tw_strand_schedule(tw_strand *strand, uint64_t delay_ns, tw_fn *fn, void *arg,
			      tw_strand_task_id *out);

/* A task in full. */
struct tw_strand_task {
	size_t size;
	tw_fn *fn;
	void *arg;
	uint64_t delay_ns; /* with TW_TASK_AT: a deadline */
	uint32_t flags;    /* TW_TASK_AT, TW_TASK_CONTEXT */
	uint32_t reserved;

	/* NULL: it runs once; else a series (task.h). first_ns or delay_ns is 0, as in tw_task. */
	const struct tw_period *period;

	/*
	 * Called once when the task has ended. TW_FATE_FIRED: on the strand. TW_FATE_CANCELLED: on
	 * the thread that cancels or closes; on the strand if a run of the series was in progress,
	 * or the task's turn came during the close.
	 */
	tw_release_fn *release;

	void *context;    /* with TW_TASK_CONTEXT, as in struct tw_task */
	const char *name; /* as in struct tw_task */
};

/*
 * Submits a task, or a series, in full. *out: as tw_strand_schedule.
 *
 * Returns: as tw_strand_schedule, and
 *   -EINVAL   task's size is too small, or its members do not go together
 *   -ERANGE   a period or deadline is out of range
 *   -E2BIG    in `task`
 */
TW_API int tw_strand_submit_task(tw_strand *strand, const struct tw_strand_task *task,
				 tw_strand_task_id *out);

/* -------------------------------------------------------------------- cancel */

/*
 * Cancels a task.
 *
 * Calls: the task's release, on this thread, if the result is TW_CANCELLED.
 * Returns:
 *   TW_CANCELLED   the task will not run (again). arg is yours, unless the task has a release
 *   TW_RUNNING     the task or its release runs now. A series ends after this run
 *   TW_GONE        the task has ended, or never was one of this strand
 */
TW_API int tw_strand_cancel(tw_strand *strand, tw_strand_task_id task);

/*
 * Cancels a task, and waits for it if it runs. After any result except TW_RUNNING and TW_SELF
 * nothing of the task runs, and what it wrote is visible.
 *
 * Blocks: at most timeout_ns.
 * Calls: as tw_strand_cancel.
 * Returns: as tw_strand_cancel, and
 *   TW_FINISHED   the task was running, and has returned
 *   TW_RUNNING    it still runs after timeout_ns
 *   TW_SELF       the caller is the task itself, or its release
 */
TW_API int tw_strand_cancel_wait(tw_strand *strand, tw_strand_task_id task, uint64_t timeout_ns);

/* --------------------------------------------------------------------- close */

/*
 * Closes the strand: cancels the tasks that have not run, refuses new ones, and waits for its
 * running task and for releases on other threads. Timers on the strand end as cancelled when they
 * are due.
 *
 * Blocks: at most timeout_ns, plus the releases. With a timeout of 0 it never waits, and a task may
 * close its own strand.
 * Calls: releases of the cancelled tasks, on this thread, in any order.
 * Returns:
 *   0            closed: no task, timer or release of the strand runs
 *   -ETIMEDOUT   closed, and something still runs: the caller itself, or another thread's task
 *   -EDEADLK     called with a timeout from the strand's own task or release
 */
TW_API int tw_strand_close(tw_strand *strand, uint64_t timeout_ns);

/*
 * Closes the strand, and frees it. NULL is allowed.
 *
 * Threads: any, with no other call on the strand. A task may destroy its own strand, even while
 * other threads wait for that task in a cancel or a close.
 * Blocks: while a task runs, without limit, if the strand is on a pool. A worker of that pool, and
 * a callback or task of the service, do not wait: then the strand goes after its last run.
 * Calls: as tw_strand_close.
 * Returns: 0
 */
TW_API int tw_strand_destroy(tw_strand *strand);

/* --------------------------------------------------------------------- looks */

/*
 * Returns the strand whose task or timer the calling thread runs, the innermost of several.
 *
 * Returns: the strand; NULL if the thread runs none.
 */
TW_API tw_strand *tw_strand_current(void);

/*
 * Returns the strand as an executor, for single timers or other strands. Timers of other services
 * must have ended before tw_strand_destroy.
 *
 * Returns: the executor; NULL if strand is NULL.
 */
TW_API tw_executor *tw_strand_executor(tw_strand *strand);

/* Gauges and counters of a strand. */
struct tw_strand_stats {
	size_t size;
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
 * Returns:
 *   0         *out is filled
 *   -EINVAL   out->size is smaller than one gauge
 */
TW_API int tw_strand_stats(tw_strand *strand, struct tw_strand_stats *out);

/*
 * Names the strand, for tw_service_dump and the Prometheus page. NULL: no name. It is not copied:
 * keep it until the strand is destroyed or gets another one. Its first 63 bytes count.
 *
 * Returns:
 *   0   named
 */
TW_API int tw_strand_set_name(tw_strand *strand, const char *name);

#ifdef __cplusplus
}
#pragma GCC diagnostic pop
#endif
#endif
