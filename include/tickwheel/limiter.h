/*
 * The limiter: runs jobs, a given number at a time, with retry and backoff, timeouts and a rate.
 *
 * The other jobs wait in order of priority. A limit bounds how many wait.
 *
 *     struct tw_limiter_config config = TW_INIT(tw_limiter_config);
 *     config.max_concurrency = 8;
 *     tw_limiter *limiter;
 *     tw_limiter_create(&limiter, service, &config);
 *     tw_limiter_submit(limiter, fetch, page, NULL);
 *     tw_limiter_wait_idle(limiter, TW_FOREVER);
 *
 * Life of a job:
 *
 *   queued     it waits in line for a permit
 *   running    an attempt holds a permit: counted in `running` and `attempts`, its function is
 *              called
 *   retrying   it waits for its next attempt, without a permit; then it is queued again
 *   settled    it has one status, once; `done` is called
 *   gone       its last attempt has ended; `release` is called, and arg is yours again
 *
 * When an attempt ends, in this order: its permit returns, it is counted, the next job starts, and
 * if nothing is left the limiter is idle. A job that fails stops neither other jobs nor the
 * limiter.
 *
 * A synchronous job ends when its function returns. An asynchronous one (TW_LIMITER_TASK_ASYNC) may
 * return TW_JOB_PENDING: its attempt ends when somebody calls tw_job_complete.
 *
 * Executor. Each running job that blocks occupies a thread, so the executor must have more threads
 * than max_concurrency: one is left for `stop` and `done`. tw_limiter_create refuses otherwise. A
 * limiter whose jobs do not block sets TW_LIMITER_NONBLOCKING. One thread runs jobs of a limiter
 * for at most 5 ms or 64 jobs; then other work of the executor gets its turn.
 *
 * Limiters may share a pool, also if their max_concurrency add up to more than its max_workers. The
 * pool keeps one worker free of jobs, so `stop` and timers run even if all jobs block. on_stuck
 * reports jobs that wait for a worker this way (pool_at_max): raise max_workers.
 *
 * Time. The driver keeps timeouts, retry delays and the rate, so a job settles as timed out in time
 * also if every worker blocks. Its `stop` and `done` then run on the executor. A job past a timeout
 * when its turn comes, or when its attempt ends, is timed out, too. Times are on the service's
 * clock, except for threads that wait: their timeouts are real time.
 *
 * Threads: any thread may call anything at any time, also from jobs and callbacks; only destroy
 * must be alone. No lock is held during a callback. `stop`, `done`, `release`, hooks and listeners
 * run on the thread that caused the change: a worker, or the caller of tw_job_complete, cancel or
 * close. What a timeout causes runs on the executor. Only the hook `added` runs inside a submit. A
 * job and its callbacks run under the context of the submit (context.h); hooks run without one. A
 * job sees what the submitter wrote before; `done`, and a thread that waited for the job, see what
 * the job wrote. In a forked child each call answers -EPERM (bool: false), and destroy frees the
 * memory.
 */
#ifndef TICKWHEEL_LIMITER_H
#define TICKWHEEL_LIMITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "executor.h"
#include "service.h"
#include "stats.h"
#include "version.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_limiter tw_limiter;

/* Handle of a job: a value. All-zero is "no job"; a stale handle is harmless. */
typedef struct tw_job {
	uint64_t id;
} tw_job;

/* ---------------------------------------------------------------------- jobs */

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
	uint32_t reserved; /* 0 */
	uint64_t queued_ns; /* time in line, over all stays */
	uint64_t run_ns;    /* time of its attempts */
};

/* What an attempt sees, until its function returns. An asynchronous job keeps a copy of `job`. */
struct tw_job_run {
	tw_limiter *limiter;
	tw_job job; /* this attempt; stale when a later one runs */
	uint64_t id;
	uint32_t attempt; /* from 1 */

	/*
	 * out: what follows if the function returns an error: enum tw_job_next. POLICY at first. An
	 * attempt that tw_job_complete ends does not use it.
	 */
	uint32_t next;
	int64_t delay_ns; /* out: with TW_JOB_NEXT_DELAY; 0 .. TW_MAX_DELAY_NS */
	void *value;      /* out: the result's value; NULL at first */
};

/*
 * What follows a failed attempt, as the attempt says. It allows no retry that struct tw_retry does
 * not allow. An attempt past its timeout does not say anything: its result is ignored.
 */
enum tw_job_next {
	TW_JOB_NEXT_POLICY = 0, /* a retry after the delay of struct tw_retry */
	TW_JOB_NEXT_FAIL = 1,   /* no retry: the job settles as failed */
	TW_JOB_NEXT_DELAY = 2   /* a retry after delay_ns, without jitter */
};

/* Answer of an asynchronous job whose attempt ends later. */
enum { TW_JOB_PENDING = 1 };

/*
 * A job. It must not longjmp, throw or end its thread.
 *
 * Returns:
 *   0                succeeded
 *   -1 .. -4095      failed with that errno
 *   TW_JOB_PENDING   asynchronous: tw_job_complete will be called, or was already
 *   any other        failed with -EINVAL
 * An error with an unknown `next`, or a delay_ns out of range: failed with -EINVAL, without retry.
 */
typedef int tw_job_fn(void *arg, struct tw_job_run *run);

/* Called once when the job has settled. */
typedef void tw_job_done_fn(void *arg, const struct tw_job_result *result);

/*
 * Called when a running attempt is not wanted any more: TW_JOB_STATUS_CANCELLED or _TIMED_OUT.
 *
 * At most once for each attempt, on the cancelling thread; after a timeout, on the executor. It
 * should end what the job waits for (shut a socket down, for example) and not block. `done` and
 * `release` come after it has returned.
 */
typedef void tw_job_stop_fn(void *arg, tw_job job, enum tw_job_status why);

/* Called once when nothing of the job will be called any more. */
typedef void tw_job_release_fn(void *arg);

enum tw_limiter_task_flags {
	TW_LIMITER_TASK_ASYNC = 1,     /* asynchronous */
	TW_LIMITER_TASK_KEEP = 2,      /* its result is kept until tw_job_forget */
	TW_LIMITER_TASK_WAIT_UNTIL = 4 /* wait_ns is an instant of tw_clock_monotonic() */
};

/*
 * Jitter of retry delays.
 *
 * d: the delay by delay_ns, factor_x100 and cap_ns.
 */
enum tw_retry_jitter {
	TW_RETRY_JITTER_NONE = 0,        /* d */
	TW_RETRY_JITTER_FULL = 1,        /* 0 .. d */
	TW_RETRY_JITTER_EQUAL = 2,       /* d / 2 .. d */
	TW_RETRY_JITTER_DECORRELATED = 3 /* delay_ns .. 3 times the last delay, at most cap_ns */
};

/*
 * Decides about a retry that the policy allows. Called once after such an attempt, before the hook
 * `retried`.
 *
 * error is the attempt's; -ETIMEDOUT after its timeout. *delay_ns is the delay before the retry.
 * The function may write another, 0 .. TW_MAX_DELAY_NS. Any other value fails the job with -EINVAL.
 *
 * Runs on the thread that ended the attempt, without a lock. It may call the limiter; a call that
 * would wait for this job or for the limiter answers -EDEADLK.
 * Returns: true: retry; false: the job settles as failed, or as timed out after a timeout
 */
typedef bool tw_retry_fn(void *arg, tw_job job, int error, int64_t *delay_ns);

/*
 * Retries of a job that fails. 0: none. An attempt that timed out has failed; a cancelled one is
 * not retried.
 */
struct tw_retry {
	uint32_t count; /* attempts after the first; 0 .. 2^30 */
	uint32_t
	    factor_x100;    /* each delay in hundredths of the one before: 100 .. 100000; 0: 100 */
	uint64_t delay_ns;  /* before the first retry; at most TW_MAX_DELAY_NS, as all times here */
	uint64_t cap_ns;    /* the longest delay, before jitter; 0: TW_MAX_DELAY_NS */
	uint64_t jitter_ns; /* adds 0 .. jitter_ns, drawn for each retry */
	uint64_t deadline_ns; /* after the submit: no retry starts later; 0: none */
	tw_retry_fn *allow;   /* NULL: each retry that the rest allows */
	uint32_t jitter;      /* enum tw_retry_jitter; DECORRELATED: factor_x100 must be 0 */
	uint32_t reserved;    /* 0 */
};

/* A job in full. Members that are 0 are not used. */
struct tw_limiter_task {
	size_t size; /* sizeof(struct tw_limiter_task) */
	tw_job_fn *fn;
	void *arg;
	tw_job_done_fn *done;
	uint32_t flags;   /* enum tw_limiter_task_flags */
	int32_t priority; /* higher first, -32768 .. 32767; equals in order of submits */

	/*
	 * Permits that each attempt takes as one: 1 .. max_concurrency; 0: 1. The first job in line
	 * waits until its permits are free, and holds up those behind it. If max_concurrency has
	 * shrunk below it since the submit, the attempt takes all permits.
	 */
	uint32_t permits;
	uint32_t reserved; /* 0 */

	/* How long submit waits for room while max_pending jobs wait; 0: not at all; TW_FOREVER. */
	uint64_t wait_ns;

	/*
	 * Timeouts, at most TW_MAX_DELAY_NS; 0: none. A job past one of them settles as timed out.
	 * If it runs, `stop` is called, its permit returns when the attempt really ends, and the
	 * attempt's result is ignored. A job past attempt_timeout_ns with retries left does not
	 * settle: it is stopped, and the retry follows.
	 *
	 * timeout_ns counts from the call of submit, also while submit waits for room.
	 */
	uint64_t queue_timeout_ns;   /* of each stay in line */
	uint64_t attempt_timeout_ns; /* of each attempt */
	uint64_t timeout_ns;         /* from submit on, all in all */

	struct tw_retry retry;
	tw_job_stop_fn *stop;
	tw_job_release_fn *release;

	const char *name; /* for tw_service_dump and the watchdog; not copied: a static string */
};

/*
 * Submits a job. It waits until a permit is free and its turn has come.
 *
 * Threads, returns: as tw_limiter_submit_task.
 */
TW_API int tw_limiter_submit(tw_limiter *limiter, tw_job_fn *fn, void *arg, tw_job *out);

/*
 * Submits a job in full. *out (may be NULL) is written before the job can run.
 *
 * Threads: any. Blocks at most wait_ns: only then while max_pending jobs wait.
 * Returns:
 *   0            submitted; on an error nothing of the job is called
 *   -EINVAL      limiter, task or fn is NULL; a knob is out of range; unknown flags; permits is
 *                above max_concurrency
 *   -ERANGE      a time is above TW_MAX_DELAY_NS
 *   -E2BIG       non-zero bytes beyond the known struct
 *   -EAGAIN      max_pending jobs wait, none could start now, and wait_ns is 0: try again after
 *                on_low_water, or set wait_ns
 *   -ETIMEDOUT   still no room after wait_ns
 *   -EBUSY       paused, with TW_LIMITER_PAUSED_REFUSES: try again after tw_limiter_resume
 *   -ESHUTDOWN   closed
 *   -ENOMEM      no memory
 */
TW_API int tw_limiter_submit_task(tw_limiter *limiter, const struct tw_limiter_task *task,
				  tw_job *out);

/* Answer of tw_job_complete: the attempt has ended after its time, so the job is timed out. */
enum { TW_JOB_LATE = 1 };

/*
 * Ends the attempt of an asynchronous job, also before its function has returned.
 *
 * error is 0 or -1 .. -4095. With the handle of tw_job_run only that attempt ends, with the handle
 * of the submit the one that runs. A refused completion changes nothing, and is counted.
 *
 * Threads: any. Calls: what follows on the end of the attempt, on this thread.
 * Returns:
 *   0             ended
 *   TW_JOB_LATE   ended after its time: the job is timed out
 *   -EALREADY     completed before, or there is no such attempt
 *   -EINVAL       limiter is NULL; an error out of range; the job is synchronous
 */
TW_API int tw_job_complete(tw_limiter *limiter, tw_job job, int error, void *value);

/* The end of an attempt in full. Members that are 0 are not used. */
struct tw_job_end {
	size_t size;      /* sizeof(struct tw_job_end) */
	int error;        /* 0, or -1 .. -4095 */
	uint32_t next;    /* enum tw_job_next; not used if error is 0 */
	int64_t delay_ns; /* with TW_JOB_NEXT_DELAY; 0 .. TW_MAX_DELAY_NS */
	void *value;
};

/*
 * As tw_job_complete, and says whether and when a retry follows.
 *
 * Threads, calls, returns: as tw_job_complete. Also:
 *   -EINVAL   end is NULL or too short; an unknown `next`
 *   -ERANGE   delay_ns is negative, or above TW_MAX_DELAY_NS
 *   -E2BIG    non-zero bytes beyond the known struct
 */
TW_API int tw_job_complete_with(tw_limiter *limiter, tw_job job, const struct tw_job_end *end);

/*
 * Cancels a job.
 *
 * If the job runs, tw_job_is_cancelled says so from now on, and `stop` is called once; another
 * thread may be calling it. The job settles when `stop` has returned and the attempt has ended: as
 * succeeded if it succeeds all the same, else as cancelled.
 *
 * Threads: any. Blocks only in the callbacks. Calls: `stop`, or `done` and `release`, on this
 * thread.
 * Returns:
 *   TW_CANCELLED   it waited, and has settled as cancelled; `done` has returned
 *   TW_RUNNING     its attempt runs
 *   TW_GONE        it has settled, or never was
 *   -EINVAL        limiter is NULL
 */
TW_API int tw_job_cancel(tw_limiter *limiter, tw_job job);

/*
 * Tells whether the job's attempt should stop: it was cancelled, or is past a timeout by the clock.
 *
 * Threads: any. Takes the limiter's lock.
 * Returns: true if it should; false if not, or for a stale handle.
 */
TW_API bool tw_job_is_cancelled(tw_limiter *limiter, tw_job job);

/*
 * Waits until the job has settled and its `done` has returned. *out (may be NULL) gets its result.
 *
 * Threads: any. Blocks at most timeout_ns.
 * Returns:
 *   0            *out is the result
 *   -ETIMEDOUT   it has not settled
 *   TW_GONE      it has settled, and its result was not kept (TW_LIMITER_TASK_KEEP)
 *   -EDEADLK     called by the job itself, or by its `done`, or by the only thread that could run
 *                it
 *   -EINVAL      limiter is NULL
 */
TW_API int tw_job_wait(tw_limiter *limiter, tw_job job, uint64_t timeout_ns,
		       struct tw_job_result *out);

/* Where a job is. */
enum tw_job_state {
	TW_JOB_STATE_QUEUED = 0,
	TW_JOB_STATE_RUNNING = 1,
	TW_JOB_STATE_RETRYING = 2, /* waits for its next attempt */
	TW_JOB_STATE_SETTLED = 3,  /* its result is kept, or `done` or its attempt still runs */
	TW_JOB_STATE_GONE = 4
};

/*
 * Tells where a job is.
 *
 * Threads: any. Never blocks.
 * Returns:
 *   >= 0      an enum tw_job_state
 *   -EINVAL   limiter is NULL
 *   -EPERM    in a forked child
 */
TW_API int tw_job_state(tw_limiter *limiter, tw_job job);

/*
 * Gives up the kept result of a job, now or when it settles.
 *
 * Threads: any.
 * Returns:
 *   0         its result is not kept any more
 *   TW_GONE   there is no such job
 *   -EINVAL   limiter is NULL, or the result is not kept (TW_LIMITER_TASK_KEEP)
 */
TW_API int tw_job_forget(tw_limiter *limiter, tw_job job);

/* ------------------------------------------------------------------- limiter */

/* Called when the limiter is idle, with the results that it collects, valid during the call. */
typedef void tw_idle_fn(void *idle_arg, const struct tw_job_result *results, size_t n);

/*
 * Hooks, each may be NULL. Called with no lock held, on the thread where it happens: added before
 * started, started before settled. Each gets the job's handle, as of the submit: a job cancelled in
 * `added` never starts.
 */
struct tw_limiter_hooks {
	void (*added)(void *hooks_arg, tw_job job, uint64_t id);
	void (*started)(void *hooks_arg, tw_job job, uint64_t id, uint32_t attempt);
	void (*retried)(void *hooks_arg, tw_job job, uint64_t id, uint32_t attempt,
			uint64_t delay_ns); /* waits for delay_ns */
	void (*settled)(void *hooks_arg, tw_job job,
			const struct tw_job_result *result); /* before `done` */
	void (*idle)(void *hooks_arg);
	void *hooks_arg;
};

enum tw_limiter_flags {
	TW_LIMITER_COLLECT = 1,        /* collects results for idle listeners; 56 bytes each */
	TW_LIMITER_PAUSED_REFUSES = 2, /* while paused, submits answer -EBUSY; else jobs wait */
	TW_LIMITER_NONBLOCKING =
	    8, /* no job blocks: max_concurrency may exceed the executor's threads */
	TW_LIMITER_PAUSED = 32,  /* created paused: call tw_limiter_resume */
	TW_LIMITER_NO_QUEUE = 16 /* refuses a job that cannot start now; max_pending is 0 */
};

/* Knobs of a limiter. All but max_concurrency may be 0. */
struct tw_limiter_config {
	size_t size;              /* sizeof(struct tw_limiter_config) */
	uint32_t max_concurrency; /* permits; 1 .. 2^30 */
	uint32_t flags;           /* enum tw_limiter_flags */
	tw_executor *executor;    /* runs the jobs; NULL: the service's. Outlives the limiter */

	/*
	 * Jobs that may wait, in line or for a retry: 1 .. 2^28; 0: 2^28. Jobs for which a permit
	 * (and a token) is free do not count.
	 */
	uint32_t max_pending;

	/* on_low_water is called each time the number of waiting jobs falls to low_water. */
	uint32_t low_water;
	void (*on_low_water)(void *low_water_arg);
	void *low_water_arg;

	/* A job in line gains one in priority for each aging_ns: 0 (none), or 1000 .. 2^46. */
	uint64_t aging_ns;

	/*
	 * At most rate_starts attempts start in any span of rate_interval_ns: a bucket of tokens,
	 * each of which returns one interval after its attempt started. 1 .. 2^20 and 1 ..
	 * TW_MAX_DELAY_NS; both or none.
	 */
	uint32_t rate_starts;
	uint32_t reserved; /* 0 */
	uint64_t rate_interval_ns;

	/*
	 * Budget of retries, over all jobs. It begins with budget_retries retries, and never holds
	 * more: 1 .. 2^20; 0: retries are not limited. Each retry takes one. Each job that succeeds
	 * adds budget_percent hundredths: 0 .. 1000. A job whose retry finds less than one left
	 * settles as if it had no retries. So a backend that is down gets no storm of retries.
	 */
	uint32_t budget_retries;
	uint32_t budget_percent;

	uint64_t seed; /* of jitter; 0: drawn from the service's seed */
	struct tw_limiter_hooks hooks;
};

/*
 * Creates a limiter. Service and executor must outlive it; they answer -EBUSY to a close meanwhile.
 *
 * Threads: any.
 * Returns:
 *   0            *out is the limiter; on an error *out is not written
 *   -EINVAL      an argument is NULL; a knob is out of range; an unknown flag; or jobs that block
 *                could occupy the whole executor: a pool needs max_workers above max_concurrency.
 *                Inline, manual and foreign executors are not checked
 *   -E2BIG       non-zero bytes beyond the known struct
 *   -ENOMEM      no memory
 *   -ESHUTDOWN   the service or the pool is closed
 *   -EPERM       in a forked child
 */
TW_API int tw_limiter_create(tw_limiter **out, tw_service *service,
			     const struct tw_limiter_config *config);

/*
 * Frees the limiter and its kept results. NULL is allowed.
 *
 * Hand-overs to the executor may still be out when all jobs have settled. Destroy sleeps until they
 * return: at most 1 s on a pool or tick thread, 20 ms on another executor. It also waits for
 * threads that are about to return from tw_job_wait, tw_limiter_close or a submit. So it may be
 * polled until it answers 0.
 *
 * Threads: any, with no other call beside it.
 * Returns:
 *   0         freed
 *   -EBUSY    jobs have not settled, callbacks run, threads wait, or hand-overs are out; nothing
 *             changed: close it first, and call again
 *   -EDEADLK  called from one of its jobs or callbacks
 */
TW_API int tw_limiter_destroy(tw_limiter *limiter);

/*
 * Pauses the limiter: after the call no attempt starts until tw_limiter_resume. Running jobs
 * finish.
 *
 * The function of a job that had left the line before may be entered a moment later: wait until
 * `running` is 0 if no job may be under way.
 *
 * Threads: any. Never blocks.
 * Returns: 0; -EINVAL if limiter is NULL
 */
TW_API int tw_limiter_pause(tw_limiter *limiter);

/*
 * Resumes a paused limiter.
 *
 * Threads: any. Never blocks.
 * Returns: 0; -EINVAL if limiter is NULL
 */
TW_API int tw_limiter_resume(tw_limiter *limiter);

/*
 * Refuses new jobs, ends those that it has, and waits for them.
 *
 *   mode                       jobs that wait                         jobs that run
 *   TW_CLOSE_DROP              settle as dropped, on this thread      end after this attempt
 *   TW_CLOSE_DRAIN, _RUN       run, and are retried                   end, and are retried
 * When the timeout of a drain has passed, the jobs that still wait are dropped. A paused limiter
 * drains nothing until tw_limiter_resume. Several closes may be under way; TW_CLOSE_DROP ends a
 * drain.
 *
 * Threads: any. Blocks at most timeout_ns, beside the callbacks of the dropped jobs.
 * Calls: `done` and `release` of the dropped jobs, on this thread.
 * Returns:
 *   0            all jobs have settled, nothing runs, idle listeners were called
 *   -ETIMEDOUT   some jobs still run; call again
 *   -EDEADLK     called from one of its jobs or callbacks with a timeout: nothing changed. Or only
 *                the calling thread could run what is left: the limiter refuses jobs
 *   -EINVAL      limiter is NULL; an unknown mode
 *   -EPERM       in a forked child
 */
TW_API int tw_limiter_close(tw_limiter *limiter, enum tw_close_mode mode, uint64_t timeout_ns);

/*
 * Refuses new jobs, and calls fn once when all jobs have settled and nothing runs. Does not wait,
 * so a job or a callback of the limiter may call it.
 *
 * mode: as for tw_limiter_close; a drain has no timeout. fn is an idle listener: see
 * tw_limiter_on_idle. Destroy the limiter after fn has returned.
 *
 * Threads: any. Never blocks, beside the callbacks of the dropped jobs.
 * Calls: `done` and `release` of the dropped jobs, on this thread; fn too, if nothing is left.
 * Returns:
 *   0         the limiter refuses jobs; fn has been, or will be called
 *   -EINVAL   limiter or fn is NULL; an unknown mode
 *   -ENOMEM   no memory; nothing changed
 *   -EPERM    in a forked child
 */
TW_API int tw_limiter_close_then(tw_limiter *limiter, enum tw_close_mode mode, tw_idle_fn *fn,
				 void *arg);

/*
 * Calls fn once when the limiter is idle: all that was added has settled, and nothing runs.
 *
 * If the limiter is idle, fn is called inside this call. While listeners are being called, fn is
 * called by their thread when they have returned: a listener that listens again is never called
 * inside itself. Listeners are called in the order in which they came.
 *
 * Threads: any.
 * Returns:
 *   0         fn has been, or will be called
 *   -EINVAL   limiter or fn is NULL
 *   -ENOMEM   no memory
 */
TW_API int tw_limiter_on_idle(tw_limiter *limiter, tw_idle_fn *fn, void *arg);

/*
 * Waits until the limiter is idle and its listeners have been called.
 *
 * Threads: any. Blocks at most timeout_ns.
 * Returns:
 *   0            it was idle
 *   -ETIMEDOUT   it was not
 *   -EDEADLK     called from one of its jobs or callbacks, or by the only thread that could run its
 *                jobs; not with timeout 0
 *   -EINVAL      limiter is NULL
 */
TW_API int tw_limiter_wait_idle(tw_limiter *limiter, uint64_t timeout_ns);

/*
 * Changes the number of permits. Growth starts jobs; shrinking stops none.
 *
 * Threads: any. Never blocks.
 * Returns:
 *   0         changed
 *   -EINVAL   limiter is NULL; 0; above 2^30; more than the executor can hold (tw_limiter_create)
 *   -ENOMEM   no memory
 */
TW_API int tw_limiter_set_max_concurrency(tw_limiter *limiter, uint32_t max_concurrency);

/*
 * Changes the rate of a limiter that was created with one. Tokens that are out return one new
 * interval after their attempts started.
 *
 * Threads: any. Never blocks.
 * Returns:
 *   0         changed
 *   -EINVAL   limiter is NULL; starts is not 1 .. 2^20; interval_ns is not 1 .. TW_MAX_DELAY_NS;
 *             the limiter was created without a rate
 *   -ENOMEM   no memory; nothing changed
 */
TW_API int tw_limiter_set_rate(tw_limiter *limiter, uint32_t starts, uint64_t interval_ns);

/*
 * Changes the priority of a job. A job in line goes behind the others of that priority, and its
 * aging begins again; its timeouts stay. A job that runs or waits for a retry uses the priority
 * when it is in line again.
 *
 * Threads: any. Never blocks.
 * Returns:
 *   0         changed
 *   TW_GONE   the job has settled, or never was
 *   -EINVAL   limiter is NULL; priority is not -32768 .. 32767
 *   -ENOMEM   no memory; nothing changed
 */
TW_API int tw_job_set_priority(tw_limiter *limiter, tw_job job, int32_t priority);

/*
 * Gauges and counters. In each snapshot, added == succeeded + failed + cancelled + timed_out +
 * dropped + pending + running - late.
 */
struct tw_limiter_stats {
	size_t size; /* in: sizeof(struct tw_limiter_stats) */
	uint64_t max_concurrency;
	uint64_t running; /* attempts under way */
	uint64_t late;    /* of these: of jobs that have timed out */
	uint64_t permits; /* that running attempts have */
	uint64_t debt;    /* of these: beyond max_concurrency */
	uint64_t pending; /* in line, waiting for a retry, or between two attempts */
	uint64_t retrying;

	uint64_t added;
	uint64_t succeeded, failed, cancelled, timed_out, dropped;
	uint64_t retried;             /* attempts that were followed by a retry */
	uint64_t over_budget;         /* retries that the budget refused */
	uint64_t rejected;            /* submits answered -EAGAIN, -ETIMEDOUT or -EBUSY */
	uint64_t refused_completions; /* second ones, and of synchronous jobs */

	uint64_t queue_mean_ns, run_mean_ns;
	struct tw_latency queue; /* each stay in line that ended with a start */
	struct tw_latency run;   /* each attempt that has ended */
};

/*
 * Reads a limiter's statistics. An older or newer `size` is fine, as with tw_service_stats.
 *
 * Threads: any. Never blocks.
 * Returns: 0; -EINVAL if NULL, or the size is too small for max_concurrency
 */
TW_API int tw_limiter_stats(tw_limiter *limiter, struct tw_limiter_stats *out);

#ifdef __cplusplus
}
#endif
#endif
