/*
 * Strands: serial executors, many and cheap, over a pool or any other executor. A strand runs its tasks one at a time, in order,
 * without a lock in the user's code. Use one for each connection, actor or session.
 *
 *     tw_strand *strand;
 *     tw_strand_create(&strand, service, NULL, NULL);
 *     tw_strand_submit(strand, on_read, connection);
 *     tw_strand_schedule(strand, 30 * TW_SECOND, on_timeout, connection, &timeout);
 *
 * Order. Tasks with delay 0 run in the order of their submits. So do tasks with equal delays. A delayed task enters the queue when
 * it is due. Nothing of one strand overlaps: tasks, series, releases that the strand calls, and timers that name the strand as their
 * executor. What one task has written, the next task sees.
 *
 * Fairness. A strand keeps its thread while it has work, for at most 64 runs and for at most 5 ms. Then it goes to the back of its
 * executor's queue. It never interrupts a task, so a longer task is the only one of its turn.
 *
 * Delays begin at the call, on the service's clock. A task never runs early. It is late as a timer is (G1, G2), plus a dispatch. When a task
 * is due, the service's driver hands it to the strand's own executor. It never waits for a worker of the service's executor.
 *
 * Context. The context of the call that submits goes with the task and its release (context.h).
 *
 * Threads. Any thread may call any function beside any other, on the same task too, also from the strand's own tasks. The exception is
 * tw_strand_destroy: no other call on the strand is under way or follows. One case is allowed: a task may destroy its own strand while
 * other threads are in a cancel, a dispose, or one of their waits. The strand stays until these calls have returned.
 * From a task of the strand itself, cancel and dispose are final without waiting, since nothing else of the strand can be running. Calls that would wait for their own caller are refused.
 *
 * Lifetime. A strand holds its service: tw_service_close answers -EBUSY until the strand is destroyed. If its executor is a pool, the
 * strand holds the pool, too. Any other executor must outlive the strand.
 *
 * Memory. A finished or cancelled task leaves no memory in use: its node serves the next task, and nodes beyond the next 2048 go back to the
 * system in pieces while the service lives.
 *
 * Errors of all functions: -EINVAL if strand is NULL (except in destroy); -EPERM in a forked child, where destroy frees what it can and
 * answers 0.
 */
#ifndef TICKWHEEL_STRAND_H
#define TICKWHEEL_STRAND_H

#include <stddef.h>
#include <stdint.h>

#include "executor.h"
#include "service.h"
#include "version.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_strand tw_strand;

/* Handle of a task: a value, like a timer's. A stale handle is harmless. All-zero is "no task". */
typedef struct tw_strand_task_id {
	uint64_t id;
} tw_strand_task_id;

enum tw_strand_flags {
	TW_STRAND_PINNED = 1 /* all runs happen on one thread of the pool, which the pool chooses */
};

/* Zero means default for each knob. */
struct tw_strand_config {
	size_t size;    /* sizeof(struct tw_strand_config); 0 only if all else is 0 too */
	uint32_t flags; /* enum tw_strand_flags */
	uint32_t reserved;
};

/*
 * Makes a strand on an executor.
 *
 * The executor is tw_pool_executor(pool), another strand's, one of the program's own, or NULL for the executor that runs the service's
 * callbacks. An executor of the program's own gets submits from any thread. cfg may be NULL. *out is written on success only.
 *
 * Threads: any. Never blocks.
 * Returns:
 *   0            the strand exists
 *   -EINVAL      out or service is NULL; an executor without sound ops; unknown flags; reserved is not 0; TW_STRAND_PINNED without a pool
 *   -E2BIG       cfg has non-zero bytes beyond the known struct
 *   -ENOMEM
 *   -ESHUTDOWN   the service or the pool is closed
 */
TW_API int tw_strand_create(tw_strand **out, tw_service *service, tw_executor *executor,
			    const struct tw_strand_config *cfg);

/* -------------------------------------------------------------------- submit */

/*
 * Submits a task: fn(arg) runs once, on the strand.
 *
 * fn never runs inside the call, whatever the executor does. So there is no recursion, and a chain of submits needs no stack. fn
 * sees what the caller wrote before. After an error nothing was submitted, and nothing will be called.
 *
 * Threads: any. Never blocks.
 * Returns:
 *   0            submitted
 *   -EINVAL      fn is NULL
 *   -ESHUTDOWN   the strand is closed
 *   -EAGAIN      2^28 tasks wait
 *   -ENOMEM
 */
TW_API int tw_strand_submit(tw_strand *strand, tw_fn *fn, void *arg);

/*
 * Schedules a task that runs once, after delay_ns. A delay of 0 submits it.
 *
 * *out (may be NULL) is written before the task is published, so the task may read it. After an error *out is "no task" (untouched
 * after -EINVAL).
 *
 * Threads: any. Never blocks.
 * Returns: as tw_strand_submit, and
 *   -ERANGE      the delay is beyond TW_MAX_DELAY_NS
 *   -EAGAIN      the service has no room for a timer
 */
TW_API int tw_strand_schedule(tw_strand *strand, uint64_t delay_ns, tw_fn *fn, void *arg, tw_strand_task_id *out);

/*
 * Schedules a series: run n is due at the call + first_ns + n * period_ns, however long the runs take.
 *
 * Missed runs follow one after the other, each through the strand's queue. The series is counted anew from now if the clock has stepped back
 * by more than 15 minutes since the last run, or forward by more than a period and 15 minutes. For other rules see tw_strand_task.period.
 *
 * Threads: any. Never blocks.
 * Returns: as tw_strand_schedule, and
 *   -EINVAL      period_ns is 0
 *   -ERANGE      the period is beyond TW_MAX_DELAY_NS
 */
TW_API int tw_strand_schedule_every(tw_strand *strand, uint64_t first_ns, uint64_t period_ns, tw_fn *fn, void *arg,
				    tw_strand_task_id *out);

/* The full form of a task. A field that is 0 is not used. */
struct tw_strand_task {
	size_t size; /* sizeof(struct tw_strand_task) */
	tw_fn *fn;
	void *arg;
	uint64_t delay_ns;  /* with TW_TASK_AT: a deadline on tw_service_now()'s scale */
	uint64_t period_ns; /* a series as of tw_strand_schedule_every; 0: none */
	uint64_t
	    tolerance_ns; /* of a series, for steps of the clock; at most TW_MAX_DELAY_NS; 0: 15 minutes, with `period` any step */

	/*
	 * Called once when the task has ended, after its last run. TW_FATE_FIRED and TW_FATE_LATE: on the strand. TW_FATE_CANCELLED: on the thread
	 * that cancelled the task or disposed of the strand. The place to free arg.
	 */
	tw_release_fn *release;

	/*
	 * A series with all that a timer's series has (struct tw_period, service.h): its first delay, mode, count and missed policy. Read
	 * during the call only. period_ns must be 0, and delay_ns as well without TW_TASK_AT. tw_current tells a run what was missed.
	 */
	const struct tw_period *period;

	uint64_t max_lateness_ns; /* how late a run may start; 0: no limit. tw_current tells the run */
	enum tw_late_policy late; /* what happens to a later run; must be 0 without max_lateness_ns */
	uint32_t flags;           /* TW_TASK_AT, TW_TASK_CONTEXT */
	void *context; /* with TW_TASK_CONTEXT: the context of fn and release; NULL: none. As in struct tw_task */
};

/*
 * Submits a task, or a series, in the full form.
 *
 * A run that is too late under TW_LATE_DROP does not happen. A task that runs once then ends with TW_FATE_LATE. A series goes on, and
 * counts an overrun.
 *
 * Threads: any. Never blocks.
 * Returns: as tw_strand_schedule, and
 *   -EINVAL      task is NULL or its size too small; fn is NULL; a tolerance without a period; period and period_ns; period and a
 *                delay_ns without TW_TASK_AT; a bad period; unknown flags; a context without TW_TASK_CONTEXT; a bad `late`
 *   -ERANGE      a period, tolerance, or deadline out of range
 *   -E2BIG       non-zero bytes beyond the known struct
 */
TW_API int tw_strand_submit_task(tw_strand *strand, const struct tw_strand_task *task, tw_strand_task_id *out);

/* -------------------------------------------------------------------- cancel */

/*
 * Cancels a task.
 *
 * Threads: any. Never blocks.
 * Calls: the task's release, if the answer is TW_CANCELLED, on this thread.
 * Returns:
 *   TW_CANCELLED   the task will not run (again). arg is the caller's, unless the task has a release
 *   TW_RUNNING     the task or its release runs now, perhaps as the caller. A series ends after this run
 *   TW_GONE        the task ran, was cancelled or disposed of, is no task of this strand, or never was
 */
TW_API int tw_strand_cancel(tw_strand *strand, tw_strand_task_id task);

/*
 * Cancels a task, and waits for it if it is running.
 *
 * After any answer except TW_RUNNING and TW_SELF nothing of the task runs any more, and what it wrote is visible.
 *
 * Threads: any. Blocks at most timeout_ns.
 * Calls: as tw_strand_cancel.
 * Returns: as tw_strand_cancel, and
 *   TW_RUNNING     timeout_ns has passed
 *   TW_FINISHED    the task was running, and has returned
 *   TW_SELF        the caller is the task itself, or its release
 */
TW_API int tw_strand_cancel_wait(tw_strand *strand, tw_strand_task_id task, uint64_t timeout_ns);

/* ------------------------------------------------------------------- dispose */

/*
 * Cancels all tasks that have not run, and refuses new ones.
 *
 * A running task goes on; after the call has returned nothing else of the strand begins. A task that is submitted meanwhile is cancelled
 * by this call, or was refused. The call touches no other strand and no thread. A second dispose changes nothing. Timers that name the
 * strand as their executor end as cancelled when they are due.
 *
 * The call goes on in pieces, so that other calls on the strand are held up for microseconds only, however many tasks wait.
 *
 * Threads: any. Never blocks.
 * Calls: the releases of the cancelled tasks, on this thread, in any order.
 * Returns: 0
 */
TW_API int tw_strand_close(tw_strand *strand);

/*
 * Disposes of the strand, and waits for the running task, and for releases that another thread's dispose or cancel is calling.
 *
 * Threads: any. Blocks at most timeout_ns, beside the releases.
 * Calls: as tw_strand_close.
 * Returns:
 *   0            nothing of the strand runs
 *   -ETIMEDOUT   the strand is disposed of, and something still runs
 *   -EDEADLK     called from the strand's own task, or a release of one; nothing changed
 */
TW_API int tw_strand_close_wait(tw_strand *strand, uint64_t timeout_ns);

/*
 * Disposes of the strand if need be, and frees it. NULL is allowed.
 *
 * The call waits for nothing that the calling thread might have to do itself. It may come from one of the strand's own tasks. If the strand
 * runs on a pool, and the caller is neither one of its workers nor inside a task or callback of the service, the strand is gone when the call
 * returns. Otherwise the strand goes as soon as its last run, or the hand-over of one, is over. tw_service_close waits for
 * that as for a callback. tw_pool_close of a pool that is not the service's own answers -EBUSY until then.
 *
 * An executor that refuses without end does not hold up the service's close: destroy the strand. Its tasks end as cancelled, their
 * releases are called, and the driver carries out the rest itself. An executor that has taken a hand-over must run it or give it back.
 *
 * If tw_strand_executor was called, 128 bytes stay until the service is destroyed, since a timer may still name the strand. Where strands
 * come and go by the million, let their timeouts be tasks with a delay, which need no executor.
 *
 * Threads: any. No other call on the strand beside it, except as said at the top (Threads). Blocks as said above.
 * Calls: as tw_strand_close.
 * Returns: 0
 */
TW_API int tw_strand_destroy(tw_strand *strand);

/* --------------------------------------------------------------------- looks */

/* The strand whose task, or timer, the calling thread runs; the innermost of several. NULL: none. */
TW_API tw_strand *tw_strand_current(void);

/*
 * The strand as an executor, of single timers (tw_task.executor) or as base of other strands. NULL if strand is.
 *
 * Timers of the strand's own service may name it even beyond tw_strand_destroy: they end as cancelled when due, and the service's
 * executor calls their releases. Timers of other services must have ended before.
 */
TW_API tw_executor *tw_strand_executor(tw_strand *strand);

struct tw_strand_stats {
	size_t size;        /* in: sizeof(struct tw_strand_stats) */
	uint64_t queued;    /* tasks that are due and wait */
	uint64_t delayed;   /* tasks that are not due yet */
	uint64_t running;   /* 0 or 1 */
	uint64_t runs;      /* tasks and timers that have returned; each run of a series counts */
	uint64_t cancelled; /* tasks, by cancel or dispose */
	uint64_t disposed;  /* 1: the strand is disposed of */
};

/*
 * Takes a snapshot.
 *
 * Threads: any. Never blocks.
 * Returns:
 *   0
 *   -EINVAL      out is NULL, or its size smaller than one gauge
 */
TW_API int tw_strand_stats(tw_strand *strand, struct tw_strand_stats *out);

#ifdef __cplusplus
}
#endif
#endif
