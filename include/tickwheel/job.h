/*
 * Jobs of a limiter: submit, complete and cancel jobs, and wait for them.
 *
 * Life of a job:
 *
 *   queued     it waits in line for a permit
 *   running    an attempt holds a permit, and its function is called
 *   retrying   it waits for its next attempt, without a permit; then it is queued again
 *   settled    it has one status, once; `done` is called
 *   gone       its last attempt has ended; `release` is called, and arg is yours again
 *
 * May I free arg?
 *
 *   in `release`             yes: nothing of the job follows
 *   in `done`                yes, except with TW_JOB_STATUS_TIMED_OUT: an attempt may still run
 *   tw_job_wait returned 0   as in `done`; a `release` may still follow
 *   the submit failed        yes: nothing of the job is called
 *
 * tickwheel_job(7) has asynchronous jobs. The limiter is in limiter.h.
 */
#ifndef TICKWHEEL_JOB_H
#define TICKWHEEL_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "timer.h"
#include "version.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_limiter tw_limiter; /* limiter.h */

/* Handle of a job: a value. All-zero is "no job"; a stale handle is harmless. */
typedef struct tw_job {
	uint64_t id;
	uint64_t attempt; /* from 1: tw_job_complete ends no other; 0: the one that runs */
} tw_job;

/* How a job settled. */
enum tw_job_status {
	TW_JOB_STATUS_SUCCEEDED = 0,
	TW_JOB_STATUS_FAILED = 1, /* with its last attempt's error */
	TW_JOB_STATUS_CANCELLED = 2,
	TW_JOB_STATUS_TIMED_OUT = 3,
	TW_JOB_STATUS_DROPPED = 4 /* by tw_limiter_close */
};

/* What became of a job. */
struct tw_job_result {
	uint64_t id; /* from 1, in the order of submits */
	enum tw_job_status status;
	int error;         /* 0, or: the function's, -ECANCELED, -ETIMEDOUT, -ESHUTDOWN (dropped) */
	void *value;       /* of its last attempt */
	uint32_t attempts; /* begun */
	uint32_t reserved;
	uint64_t queued_ns; /* time in line, over all stays */
	uint64_t run_ns;    /* time of its attempts */
};

/* What an attempt sees, until its function returns. An asynchronous job keeps a copy of `job`. */
struct tw_job_run {
	tw_limiter *limiter;
	tw_job job; /* with the number of this attempt */
	uint64_t id;
	uint32_t attempt; /* from 1 */
	void *value;      /* out: the result's value; NULL at first */
};

/* Result of an asynchronous job whose attempt ends later. */
enum { TW_JOB_PENDING = 1 };

/*
 * A job, on a thread of the executor. It may block, and must not longjmp, throw or end its thread.
 *
 * Returns:
 *   0                succeeded
 *   -1 .. -4095      failed with that errno
 *   TW_JOB_PENDING   asynchronous: tw_job_complete will be called, or was already
 *   any other        failed with -EINVAL
 */
typedef int tw_job_fn(void *arg, struct tw_job_run *run);

/*
 * Called once when the job has settled. tickwheel_limiter(7) names the thread, which it may block.
 */
typedef void tw_job_done_fn(void *arg, const struct tw_job_result *result);

/*
 * Called when the attempt that `job` names is cancelled or timed out (`why`). It should end what
 * the job waits for and not block.
 */
typedef void tw_job_stop_fn(void *arg, tw_job job, enum tw_job_status why);

/*
 * Called once when nothing of the job will be called any more: the place to free arg. For its
 * thread the rules of `done` hold. It may block.
 */
typedef void tw_job_release_fn(void *arg);

/* ------------------------------------------------------------------- submit */

/* Flags of struct tw_limiter_task. */
enum tw_limiter_task_flags {
	TW_LIMITER_TASK_ASYNC = 1,     /* asynchronous */
	TW_LIMITER_TASK_KEEP = 2,      /* its result is kept until tw_job_wait returns 0 */
	TW_LIMITER_TASK_WAIT_UNTIL = 4 /* wait_ns is an instant of tw_clock_monotonic() */
};

/* Jitter of retry delays. d: the delay by delay_ns, factor_x100 and cap_ns. */
enum tw_retry_jitter {
	TW_RETRY_JITTER_NONE = 0, /* d */
	TW_RETRY_JITTER_FULL = 1  /* 0 .. d, drawn for each retry */
};

/*
 * Decides about a retry that struct tw_retry allows. It runs on a thread of the executor, without a
 * lock, and may block.
 *
 * `attempt` has failed, with error; -ETIMEDOUT after its timeout. *delay_ns is the policy's delay;
 * the function may write another, 0 .. TW_MAX_DELAY_NS. Meanwhile the job waits: if its timeout_ns
 * settles it, the result is ignored.
 *
 * Returns: true: retry; false: the job settles as failed, or as timed out after a timeout.
 */
typedef bool tw_retry_fn(void *arg, tw_job job, int error, uint32_t attempt, int64_t *delay_ns);

/*
 * Retries of a job that fails. An attempt that timed out has failed; a cancelled one is not
 * retried. If deadline_ns passes while a retry is in line, the job settles with its last attempt's
 * result.
 */
struct tw_retry {
	uint32_t count;       /* attempts after the first; 0 .. 2^30 */
	uint32_t factor_x100; /* each delay in percent of the one before: 100 .. 100000; 0: 100 */
	uint64_t delay_ns;    /* before the first retry; all times: at most TW_MAX_DELAY_NS */
	uint64_t cap_ns;      /* the longest delay, jitter included; 0: TW_MAX_DELAY_NS */
	uint64_t deadline_ns; /* after the submit: no retry starts later; 0: none */
	tw_retry_fn *allow;   /* NULL: each retry that the rest allows */
	uint32_t jitter;      /* enum tw_retry_jitter */
	uint32_t reserved;
};

/* A job in full. */
struct tw_limiter_task {
	size_t size;
	tw_job_fn *fn;
	void *arg;
	tw_job_done_fn *done;
	uint32_t flags;   /* enum tw_limiter_task_flags */
	int32_t priority; /* higher first, -32768 .. 32767; equals in order of submits */

	/*
	 * Permits that each attempt takes in one step: 1 .. max_concurrency; 0: 1. The first job in
	 * line holds up those behind it until all its permits are free.
	 */
	uint32_t permits;
	uint32_t reserved;

	/* How long submit waits for room while max_pending jobs wait. 0: -EAGAIN. */
	uint64_t wait_ns;

	/*
	 * Timeouts, at most TW_MAX_DELAY_NS; 0: none. A job past one of them settles as timed out,
	 * also while a callback of it blocks. If an attempt runs, `stop` is called. The attempt
	 * keeps its permits until it has ended, and its result is ignored. After attempt_timeout_ns
	 * with retries left the job does not settle: the retry follows the end of the attempt.
	 */
	uint64_t queue_timeout_ns;   /* of each stay in line */
	uint64_t attempt_timeout_ns; /* of each attempt */
	uint64_t timeout_ns;         /* from the call of submit on, all in all */

	struct tw_retry retry;
	tw_job_stop_fn *stop;
	tw_job_release_fn *release;

	const char *name; /* as in struct tw_task */
};

/*
 * Submits a job, which runs when a permit is free and its turn has come. out may be NULL.
 *
 * Returns:
 *   0            submitted; on an error nothing of the job is called
 *   -EAGAIN      max_pending jobs wait that cannot start now: try again later
 *   -EBUSY       paused, with TW_LIMITER_PAUSED_REFUSES: try again when it is resumed
 *   -ESHUTDOWN   closed
 *   -ENOMEM      no memory
 */
TW_API int tw_limiter_submit(tw_limiter *limiter, tw_job_fn *fn, void *arg, tw_job *out);

/*
 * Submits a job in full. *out (may be NULL) is written before the job can run.
 *
 * Blocks: at most wait_ns, and only while max_pending jobs wait.
 * Returns:
 *   0            submitted; on an error nothing of the job is called
 *   -EBUSY       paused, with TW_LIMITER_PAUSED_REFUSES: try again when it is resumed
 *   -ESHUTDOWN   closed
 *   -ENOMEM      no memory
 *   -EINVAL      fn is NULL; a knob is out of range; unknown flags; permits is above
 *                max_concurrency
 *   -ERANGE      a time is above TW_MAX_DELAY_NS
 *   -EAGAIN      max_pending jobs wait, this one cannot start now, and wait_ns is 0
 *   -ETIMEDOUT   still no room after wait_ns
 */
TW_API int tw_limiter_submit_task(tw_limiter *limiter, const struct tw_limiter_task *task,
				  tw_job *out);

/* ----------------------------------------------------------------- complete */

/* Result of tw_job_complete: the attempt's time was over. */
enum { TW_JOB_LATE = 1 };

/*
 * Ends the attempt of an asynchronous job, also before its function has returned. error is 0 or -1
 * .. -4095. For a job with retries, use the handle in tw_job_run or of `stop`.
 *
 * Calls: `done`, `release`, events and listeners that follow, on this thread; if the function has
 * not returned, after it, on its thread, except the `done` of a job that has timed out.
 * Returns:
 *   0             ended
 *   TW_JOB_LATE   ended after its time: error and value are not used
 *   -EALREADY     completed before, or there is no such attempt
 *   -EINVAL       an error out of range; the job is synchronous
 */
TW_API int tw_job_complete(tw_limiter *limiter, tw_job job, int error, void *value);

/* ------------------------------------------------------------- cancel, wait */

/*
 * Cancels a job. Does not wait for its attempt: use tw_job_wait. If the job runs, `stop` is called,
 * once for each attempt, and tw_job_state says that it should stop.
 *
 * Calls: `stop`, `done` and `release`, as far as they are due now, on this thread.
 * Returns:
 *   TW_CANCELLED   it waited, and has settled as cancelled; `done` and `release` have returned
 *   TW_RUNNING     its attempt or its `retry.allow` runs; `done` and `release` follow
 *   TW_GONE        it has settled, or never was; its callbacks may still run
 */
TW_API int tw_job_cancel(tw_limiter *limiter, tw_job job);

/*
 * Waits until the job has settled and its `done` has returned; if it has timed out, only until it
 * has settled. *out (may be NULL) gets its result, which is not kept any longer.
 *
 * Blocks: at most timeout_ns.
 * Returns:
 *   0            *out is the result
 *   -ETIMEDOUT   it has not settled
 *   TW_GONE      its `done` had returned before the call, and the result was not kept
 *                (TW_LIMITER_TASK_KEEP), or an earlier wait has got it; or it never was
 *   -EDEADLK     called by the job itself or one of its callbacks; or, with a timeout, by
 *                one that tw_limiter_close calls
 */
TW_API int tw_job_wait(tw_limiter *limiter, tw_job job, uint64_t timeout_ns,
		       struct tw_job_result *out);

/* Where a job is. */
enum tw_job_state {
	TW_JOB_STATE_QUEUED = 0,
	TW_JOB_STATE_RUNNING = 1,
	TW_JOB_STATE_RETRYING = 2, /* an attempt has ended, and the next one or its end follows */
	TW_JOB_STATE_SETTLED = 3,  /* its result is kept, or `done` or its attempt still runs */
	TW_JOB_STATE_GONE = 4,
	TW_JOB_STATE_STOPPING = 5 /* runs, and was cancelled or is past a timeout by the clock */
};

/*
 * Tells where a job is. Takes the limiter's lock. A job whose own state is not
 * TW_JOB_STATE_RUNNING should stop.
 *
 * Returns:
 *   >= 0   an enum tw_job_state
 */
TW_API int tw_job_state(tw_limiter *limiter, tw_job job);

/*
 * Changes the priority of a job.
 *
 * Returns:
 *   0         changed
 *   TW_GONE   the job has settled, or never was
 *   -EINVAL   priority is not -32768 .. 32767
 */
TW_API int tw_job_set_priority(tw_limiter *limiter, tw_job job, int32_t priority);

#ifdef __cplusplus
}
#endif
#endif
