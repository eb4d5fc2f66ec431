/*
 * Strands: serial executors, many and cheap, over a pool or any other executor. What is submitted to one strand runs one at a time, in
 * order, without a lock in the user's code: a connection, an actor, a session.
 *
 *     tw_strand *strand;
 *     tw_strand_create(&strand, service, NULL, NULL);
 *     tw_strand_submit(strand, 0, on_read, connection, NULL);
 *     tw_strand_submit(strand, 30 * TW_SECOND, on_timeout, connection, &timeout);
 *
 * Order. Tasks with delay 0, submitted in turn, run in that order; tasks with equal delays as well. A delayed task takes its place in the
 * queue when it is due. Nothing of one strand ever overlaps: tasks, series, releases called by the strand, and timers that name it as
 * their executor. What one task has written, the next one sees. A strand keeps its thread for up to 64 runs while it has work, then goes to the
 * back of its executor's queue.
 *
 * The context of the call that submits goes with the task, its release too (context.h).
 *
 * Delays begin at the call, on the service's clock; a task never runs early, and as late as a timer would (G1, G2), plus a dispatch.
 *
 * Threads. Any thread may call anything beside anything, on the same task too, also from the strand's own tasks; but destroy: no other call
 * on the strand is under way or will follow. From a task of the strand itself a cancel or dispose is final without waiting, since
 * nothing else of the strand can be running; calls that would wait for their own caller are refused.
 *
 * Lifetime. A strand holds its service, which answers -EBUSY to close until the strand is destroyed, and if its executor is a pool, that as
 * well. Any other executor must outlive it.
 *
 * Errors. -EINVAL: NULL for a strand (but in destroy). In a forked child: -EPERM; destroy frees what it can there, and answers 0.
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

/* Handle of a task: a value that never goes bad, like a timer's. All-zero is "no task". */
typedef struct tw_strand_task {
	uint64_t id;
} tw_strand_task;

enum tw_strand_flags {
	TW_STRAND_PINNED = 1 /* all of it runs on one and the same thread of its pool; which one, the pool chooses */
};

/* Zero means default for each knob. */
struct tw_strand_config {
	size_t size;    /* sizeof(struct tw_strand_config); 0 only if all else is 0 too */
	uint32_t flags; /* enum tw_strand_flags */
	uint32_t reserved;
};

/*
 * Makes a strand on an executor: tw_pool_executor(pool), another strand's, one of the program's own, or NULL for whatever runs the
 * service's callbacks. An executor of the program's own gets submits from any thread. cfg may be NULL. *out is written on success only.
 * -EINVAL: out or service NULL, an executor without sound ops, unknown flags, reserved not 0, TW_STRAND_PINNED without a pool. -E2BIG.
 * -ENOMEM. -ESHUTDOWN: the service or pool is closed.
 */
TW_API int tw_strand_create(tw_strand **out, tw_service *service, tw_executor *executor,
			    const struct tw_strand_config *cfg);

/* -------------------------------------------------------------------- submit */

/*
 * Common to all that submit. Never runs fn inside the call, whoever calls: no recursion. *out (may be NULL) is written before
 * the task is published: it may read it. What the caller wrote before is visible to fn. A delay of 0 is "immediate".
 * 0. -EINVAL: strand or fn NULL. -ERANGE: a delay beyond TW_MAX_DELAY_NS. -ESHUTDOWN: the strand is disposed. -ENOMEM. -EAGAIN: 2^28
 * tasks wait, or (with a delay) the service has no room for a timer. After an error nothing was submitted, nothing will be called, and *out
 * is "no task".
 */
TW_API int tw_strand_submit(tw_strand *strand, uint64_t delay_ns, tw_fn *fn, void *arg, tw_strand_task *out);

/*
 * A series: run n is due at the call + first_ns + n * period_ns, whatever the runs took. Runs that were missed follow one after the other,
 * each through the strand's queue. If the clock is found to have stepped back by more than a tolerance of 15 minutes since the last run, or
 * forward by more than a period and the tolerance, the series is counted anew from there.
 * -EINVAL also: period_ns 0. -ERANGE also: a period beyond TW_MAX_DELAY_NS.
 */
TW_API int tw_strand_submit_every(tw_strand *strand, uint64_t first_ns, uint64_t period_ns, tw_fn *fn, void *arg,
				  tw_strand_task *out);

/* The full form. Fields left 0 mean: not wanted. */
struct tw_strand_spec {
	size_t size; /* sizeof(struct tw_strand_spec) */
	tw_fn *fn;
	void *arg;
	uint64_t delay_ns;
	uint64_t period_ns;    /* 0: it runs once */
	uint64_t tolerance_ns; /* of a series, at most TW_MAX_DELAY_NS; 0: 15 minutes */

	/*
	 * Told when the task has come to its end, once, after its last run: TW_FATE_FIRED on the strand; TW_FATE_CANCELLED on the thread that
	 * cancelled it or disposed of the strand. The place to free arg.
	 */
	tw_release_fn *release;
};

/* -EINVAL also: spec NULL or too small, a tolerance without a period. -E2BIG: non-zero bytes beyond the known struct. */
TW_API int tw_strand_submit_spec(tw_strand *strand, const struct tw_strand_spec *spec, tw_strand_task *out);

/* -------------------------------------------------------------------- cancel */

/*
 * Never waits. TW_CANCELLED: it will not run (again), arg is the caller's, unless it has a release, which has then been called on this
 * thread. TW_RUNNING: it runs right now, perhaps as the caller, or its release does; a series ends after it. TW_GONE: it ran, was
 * cancelled or disposed of, is no task of this strand, or never was.
 */
TW_API int tw_strand_cancel(tw_strand *strand, tw_strand_task task);

/*
 * Cancels, and waits if it is running. After any answer but TW_RUNNING (timeout_ns ran out) and TW_SELF (called by the task itself, or its
 * release) nothing of the task runs any more, and what it wrote is visible. TW_FINISHED: it was running, and has returned.
 */
TW_API int tw_strand_cancel_wait(tw_strand *strand, tw_strand_task task, uint64_t timeout_ns);

/* ------------------------------------------------------------------- dispose */

/*
 * Cancels all that has not run, and refuses what comes later. Releases are called on this thread. Touches no other strand and no thread. A
 * task that is running goes on; after dispose has returned nothing else of the strand begins. What is submitted meanwhile
 * is cancelled by it, or was refused. A second dispose changes nothing. Timers that name the strand as their executor end as cancelled when
 * they come due. 0.
 */
TW_API int tw_strand_dispose(tw_strand *strand);

/*
 * The same, and waits at most timeout_ns for the task that runs, and for releases that another thread's dispose or cancel is calling. 0.
 * -ETIMEDOUT: it is disposed of, and something runs still. -EDEADLK: called from the strand's own task, or a release of one; nothing changed.
 */
TW_API int tw_strand_dispose_wait(tw_strand *strand, uint64_t timeout_ns);

/*
 * Disposes if need be, and frees; the place may be one of its own tasks. NULL is allowed. Does not wait for anything that the calling thread
 * might have to do itself: only if the strand runs on a pool, and the caller is neither one of its workers nor inside a task or
 * callback of the service, the strand is gone when this returns. Otherwise it goes as soon as its last run, or the
 * hand-over of it, is over on its executor; tw_service_close waits for that as for a callback, tw_pool_close of a pool that is not the
 * service's own answers -EBUSY until then.
 * If tw_strand_executor was called, 128 bytes stay until the service is destroyed: a timer may name the strand for as long as it lives, which
 * nothing counts, so that no timer pays for it; and the driver may have read that name just before the timer ended. Where strands come and
 * go by the million, let their timeouts be tasks with a delay, which need no executor. 0.
 */
TW_API int tw_strand_destroy(tw_strand *strand);

/* --------------------------------------------------------------------- looks */

/* The strand whose task, or timer, the calling thread runs; the innermost of several. NULL: none. */
TW_API tw_strand *tw_strand_current(void);

/*
 * The strand as an executor, of single timers (tw_task.executor) or as base of other strands. Timers of the strand's own
 * service may name it even beyond tw_strand_destroy: they end as cancelled when due, their releases are told by the service's executor. Those of
 * other services must have ended before. NULL if strand is.
 */
TW_API tw_executor *tw_strand_executor(tw_strand *strand);

struct tw_strand_stats {
	size_t size;        /* in: sizeof(struct tw_strand_stats) */
	uint64_t queued;    /* tasks that are due and wait */
	uint64_t delayed;   /* tasks that are not due yet */
	uint64_t running;   /* 0 or 1 */
	uint64_t runs;      /* tasks and timers that have returned; each run of a series counts */
	uint64_t cancelled; /* tasks, by cancel or dispose */
	uint64_t disposed;  /* 1: it is */
};

/* A snapshot. -EINVAL: NULL, or size smaller than one gauge. */
TW_API int tw_strand_stats_get(tw_strand *strand, struct tw_strand_stats *out);

#ifdef __cplusplus
}
#endif
#endif
