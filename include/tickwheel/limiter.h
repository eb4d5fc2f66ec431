/*
 * The limiter: runs jobs, at most so many at a time; the rest wait in order of priority. With retries, timeouts, a rate, bounds
 * on what waits.
 *
 *     struct tw_limiter_config config = {.size = sizeof config, .max_concurrency = 8};
 *     tw_limiter *limiter;
 *     tw_limiter_create(&limiter, service, &config);
 *     tw_limiter_submit(limiter, fetch, page, NULL);
 *     tw_limiter_wait_idle(limiter, TW_FOREVER);
 *
 * Life of a job. Submitted it waits; as an **attempt** it runs, with a permit; then it is **settled**, with one status, exactly once; or
 * it waits for a retry, without a permit, and then in line again. When it has settled, `done` is called once; when besides its last
 * attempt has really ended, `release` is called once, and arg is yours again.
 *
 * An attempt **starts** when its job leaves the line: from then on it is running, counted in `running` and in `attempts`, and its function
 * is called next, with no more in between than the callback of low water, and the hook `started`.
 *
 * A synchronous job ends as its function returns. An asynchronous one (TW_LIMITER_TASK_ASYNC) may return TW_JOB_PENDING: its attempt ends, and its
 * permit comes back, when somebody calls tw_job_complete, exactly once.
 *
 * When an attempt ends, in this order: it leaves the running ones, gives its permit back, is counted, the next starts, and if nothing is
 * left the limiter is idle. A job that fails stops neither others nor the limiter.
 *
 * Executor. Jobs run on the executor only. Each running job that blocks occupies one of its threads, so the executor must have more threads
 * than `max_concurrency`: one is left for `stop` and `done`. tw_limiter_create checks that for each
 * limiter alone.
 *
 * Several limiters may share a pool, also if their `max_concurrency` values add up to more than its
 * max_workers. The pool keeps one worker free of jobs: at most max_workers - 1 of its workers run jobs at a
 * time. Further jobs wait for one of these workers, although their limiters have permits. So `stop` and the
 * pool's timers run even if all jobs block. A service's on_stuck reports jobs that wait this way
 * (pool_at_max); raise max_workers then.
 *
 * A limiter whose jobs do not block (asynchronous ones, or short computations) sets
 * TW_LIMITER_NONBLOCKING instead. One thread runs jobs of a limiter for at most 5 ms or 64 jobs in a
 * row; then other work of the executor gets its turn.
 *
 * Timeouts, retry delays and the rate are kept by the thread that drives the service. They never wait for a worker: a job settles as timed
 * out on time also if every worker blocks. Its `stop` and `done` then run on the executor. Timers are not the only ones
 * to look: a job that is past a timeout when its turn comes, or when its attempt ends, is timed out too.
 *
 * Threads: any thread may call anything at any time, also from jobs and callbacks, but destroy, which must be alone. Callbacks are called
 * with no lock held. `stop`, `done`, `release`, hooks and listeners run on the thread that caused the change: a worker, or the
 * caller of tw_job_complete, cancel or close. What a timeout causes runs on the executor. None of them runs inside submit but the hook
 * `added`. A job, its callbacks, and an idle listener
 * are under the context of the call that passed them (context.h); hooks and low water under none. What a thread did before submit is
 * visible to the job, and what the job did to `done` and to whoever waited for it. In a forked child all calls answer -EPERM (bool:
 * false) but destroy, which frees the memory.
 *
 * Times are on the service's clock, but for threads that wait (tw_job_wait, tw_limiter_wait_idle, _close, submit with wait_ns),
 * whose timeouts are real time.
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

enum tw_job_status {
	TW_JOB_STATUS_SUCCEEDED = 0,
	TW_JOB_STATUS_FAILED = 1, /* its last attempt's error */
	TW_JOB_STATUS_CANCELLED = 2,
	TW_JOB_STATUS_TIMED_OUT = 3,
	TW_JOB_STATUS_DROPPED = 4 /* by tw_limiter_close */
};

struct tw_job_result {
	uint64_t id; /* from 1, in the order of submits */
	enum tw_job_status status;
	int error;          /* 0, or a negative errno: the function's, -ECANCELED, -ETIMEDOUT, -ESHUTDOWN (dropped) */
	void *value;        /* the job's, of its last attempt */
	uint32_t attempts;  /* begun */
	uint32_t reserved;  /* 0 */
	uint64_t queued_ns; /* in line, over all its stays there; waits for retries not included */
	uint64_t run_ns;    /* its attempts; of one that still runs (timed out): until now */
};

/* What an attempt sees. Valid until the function returns; an asynchronous job keeps a copy of `job`. */
struct tw_job_run {
	tw_limiter *limiter;
	tw_job job; /* names this very attempt: tw_job_complete refuses it when one of the six after it runs */
	uint64_t id;
	uint32_t attempt; /* from 1 */
	uint32_t reserved;
	void *value; /* out: the result's; NULL at first */
};

enum { TW_JOB_PENDING = 1 };

/*
 * A job. 0: succeeded. Negative errno (-1 .. -4095): failed. TW_JOB_PENDING: of an asynchronous job only, tw_job_complete will be
 * called, or was already. Anything else: failed with -EINVAL. It must not longjmp, throw or end its thread.
 */
typedef int tw_job_fn(void *arg, struct tw_job_run *run);

/* Called once when the job has settled. */
typedef void tw_job_done_fn(void *arg, const struct tw_job_result *result);

/*
 * The attempt is not wanted any more: TW_JOB_STATUS_CANCELLED or TW_JOB_STATUS_TIMED_OUT. At most once for each attempt, which runs or has just
 * ended; `done` and `release` come after it has returned. Called by the thread that cancelled; after a timeout on the executor.
 * It should end what the job waits for (shut a socket down, for example) and not block itself.
 */
typedef void tw_job_stop_fn(void *arg, tw_job job, enum tw_job_status why);

/* Called once, when nothing of the job will be called any more. */
typedef void tw_job_release_fn(void *arg);

enum tw_limiter_task_flags {
	TW_LIMITER_TASK_ASYNC = 1,     /* asynchronous */
	TW_LIMITER_TASK_KEEP = 2,      /* its result is kept until tw_job_forget */
	TW_LIMITER_TASK_WAIT_UNTIL = 4 /* wait_ns is an instant of tw_clock_now(tw_clock_monotonic()) */
};

/*
 * A job that fails is tried again. Zero: not at all. An attempt that timed out has failed; one that was cancelled is not tried again.
 */
struct tw_retry {
	uint32_t count;       /* attempts after the first; 0 .. 2^30 */
	uint32_t factor_x100; /* each delay is so many hundredths of the last; 100 .. 100000; 0: 100 */
	uint64_t delay_ns;    /* before the first retry; at most TW_MAX_DELAY_NS, as all here */
	uint64_t cap_ns;      /* no delay is longer, but for the jitter; 0: TW_MAX_DELAY_NS */
	uint64_t jitter_ns;   /* adds 0 .. jitter_ns, drawn anew for each retry (config: seed) */
	uint64_t deadline_ns; /* no retry begins to wait if its wait would end so long after the submit; 0: none */
};

/* The full form. Fields left 0 mean: not wanted. */
struct tw_limiter_task {
	size_t size; /* sizeof(struct tw_limiter_task) */
	tw_job_fn *fn;
	void *arg;
	tw_job_done_fn *done;
	uint32_t flags;   /* enum tw_limiter_task_flags */
	int32_t priority; /* higher first, -32768 .. 32767; in turn among equals */

	/*
	 * How long submit may wait for room if max_pending jobs wait: 0: not at all; TW_FOREVER. The caller's thread waits: not for one
	 * that the jobs themselves need.
	 */
	uint64_t wait_ns;

	/*
	 * At most TW_MAX_DELAY_NS; 0: none. A job that is past one of them settles at once as timed out; if it is running, its permit comes
	 * back when the attempt really ends, and what that returns is not looked at. An attempt past attempt_timeout_ns while retries
	 * are left does not settle the job: it is told to stop, and when it has ended, whatever it returns, the retry follows.
	 *
	 * timeout_ns counts from the call of submit. If it passes while submit waits for room, the job is accepted when there is room,
	 * is not started, and settles as timed out.
	 *
	 * Each job that has one of them, or waits for a retry, keeps at most one timer of the service. Where that has no room for it after
	 * the submit (max_timers, memory), nothing is lost: the driver looks after the job in each tick, which is a tick late at most.
	 */
	uint64_t queue_timeout_ns;   /* of each stay in line */
	uint64_t attempt_timeout_ns; /* of each attempt */
	uint64_t timeout_ns;         /* from submit on, all in all */

	struct tw_retry retry;
	tw_job_stop_fn *stop;
	tw_job_release_fn *release;
};

/*
 * Submits a job: it waits until a permit is free and its turn has come. *out (may be NULL) is written before the job can run. 0. -EINVAL: limiter or fn NULL, a knob out
 * of range, unknown flags. -ERANGE: a time beyond TW_MAX_DELAY_NS. -E2BIG. -EAGAIN: max_pending jobs wait, none could start now, and wait_ns is 0; or no timer
 * could be had. -ETIMEDOUT: still no room. -EBUSY: paused, and the config says to refuse then. -ESHUTDOWN: closed. -ENOMEM. A refused job is not called, nor
 * is its done or release.
 */
TW_API int tw_limiter_submit(tw_limiter *limiter, tw_job_fn *fn, void *arg, tw_job *out);
TW_API int tw_limiter_submit_task(tw_limiter *limiter, const struct tw_limiter_task *task, tw_job *out);

/*
 * Ends the attempt of an asynchronous job, from any thread, also before its function has returned. error: 0, or a negative
 * errno (-1 .. -4095). With the handle of tw_job_run only that attempt, with the one of submit whichever runs.
 * 0. TW_JOB_LATE: the attempt has ended, but after its time: the job is timed out. -EALREADY: the attempt has been completed, or has
 * ended otherwise, or there is no such job: counted (tw_limiter_stats.refused_completions). -EINVAL: limiter NULL, error positive or
 * below -4095, or the job is synchronous (counted too). A refused completion changes nothing.
 */
enum { TW_JOB_LATE = 1 };
TW_API int tw_job_complete(tw_limiter *limiter, tw_job job, int error, void *value);

/*
 * TW_CANCELLED: it waited (in line, or for a retry), and has settled as cancelled: `done` has returned. TW_RUNNING: tw_job_is_cancelled
 * says so from now on, and the attempt is told to stop, once: if this is the first cancel, by this call, and `stop` has returned; if
 * another thread is telling it (an earlier cancel, a timeout), that `stop` may still be under way: nobody waits for it here, so cancels
 * from inside of `stop` callbacks cannot wait for each other. The job settles when `stop` has returned and the attempt has ended: as
 * succeeded if it succeeds all the same, else as cancelled, with its error. TW_GONE: it has settled, or never was. -EINVAL: NULL. O(1).
 */
TW_API int tw_job_cancel(tw_limiter *limiter, tw_job job);

/*
 * Whether the job's attempt should stop: cancelled, or past a timeout (by the clock, whatever timers do). False for stale handles.
 * Any thread; takes the limiter's lock.
 */
TW_API bool tw_job_is_cancelled(tw_limiter *limiter, tw_job job);

/*
 * Waits until the job has settled and its `done` has returned, at most timeout_ns (TW_FOREVER; 0: only asks). 0: *out (may be NULL) is
 * its result. -ETIMEDOUT. TW_GONE: it has settled already, and its result was not kept (TW_LIMITER_TASK_KEEP). -EDEADLK: called by the job itself,
 * or by its done; or the job waits for the calling thread, which is the executor's only one. -EINVAL: NULL.
 */
TW_API int tw_job_wait(tw_limiter *limiter, tw_job job, uint64_t timeout_ns, struct tw_job_result *out);

enum tw_job_state {
	TW_JOB_STATE_QUEUED = 0,
	TW_JOB_STATE_RUNNING = 1,
	TW_JOB_STATE_RETRYING = 2, /* waits for its next attempt */
	TW_JOB_STATE_SETTLED =
	    3, /* its result is kept, or `done` has not returned yet, or it has timed out and its attempt still runs */
	TW_JOB_STATE_GONE = 4
};

/* An enum tw_job_state. -EINVAL: NULL. */
TW_API int tw_job_state(tw_limiter *limiter, tw_job job);

/*
 * A job with TW_LIMITER_TASK_KEEP will not be asked for any more, now or once it has settled. 0. TW_GONE: no such job. -EINVAL: NULL, or not kept.
 */
TW_API int tw_job_forget(tw_limiter *limiter, tw_job job);

/* ------------------------------------------------------------------- limiter */

/* Told when the limiter is idle: as many results as it collects (config), in the order of settling; valid during the call. */
typedef void tw_idle_fn(void *idle_arg, const struct tw_job_result *results, size_t n);

/*
 * Called with no lock held, on the thread where it happens; added comes before started, started before settled. Each may be NULL.
 * When `added` is called, submit has written the job's handle, which may be used: a job that is cancelled there never starts.
 */
struct tw_limiter_hooks {
	void (*added)(void *hooks_arg, uint64_t id);
	void (*started)(void *hooks_arg, uint64_t id, uint32_t attempt);
	void (*retried)(void *hooks_arg, uint64_t id, uint32_t attempt, uint64_t delay_ns); /* will wait so long */
	void (*settled)(void *hooks_arg, const struct tw_job_result *result);               /* before `done` */
	void (*idle)(void *hooks_arg);
	void *hooks_arg;
};

enum tw_limiter_flags {
	TW_LIMITER_COLLECT = 1,        /* results are collected for idle listeners; 56 bytes each */
	TW_LIMITER_PAUSED_REFUSES = 2, /* while paused, submit answers -EBUSY; else jobs wait */
	TW_LIMITER_NONBLOCKING = 8,    /* no job blocks its thread: max_concurrency may exceed the executor's threads */
	TW_LIMITER_PAUSED = 32,        /* paused from its creation on, until tw_limiter_resume */
	TW_LIMITER_NO_QUEUE = 16 /* no job waits in line: one that cannot start now is refused; max_pending is 0 */
};

struct tw_limiter_config {
	size_t size;              /* sizeof(struct tw_limiter_config) */
	uint32_t max_concurrency; /* permits; 1 .. 2^30 */
	uint32_t flags;           /* enum tw_limiter_flags */
	tw_executor *executor;    /* runs the jobs; NULL: whatever runs the service's callbacks. Outlives the limiter */

	/*
	 * Jobs that may wait, in line or for a retry; 1 .. 2^28; 0: 2^28. Jobs in line for which permits (and tokens, with a rate)
	 * are free do not count. While so many wait, submit refuses.
	 */
	uint32_t max_pending;

	/* on_low_water(low_water_arg) is called each time the number of those that wait falls from above low_water, which may be 0, to it. */
	uint32_t low_water;
	void (*on_low_water)(void *low_water_arg);
	void *low_water_arg;

	/* A job in line gains one in priority for each aging_ns that it waits. 0: none; else 1000 .. 2^46. */
	uint64_t aging_ns;

	/*
	 * At most rate_starts attempts start in any span of rate_interval_ns: a bucket of that many tokens. An attempt takes one as it
	 * leaves the line, and it comes back one interval after its function was about to be called. 1 .. 2^20 and 1 .. TW_MAX_DELAY_NS;
	 * both or none.
	 */
	uint32_t rate_starts;
	uint32_t reserved; /* 0 */
	uint64_t rate_interval_ns;

	uint64_t seed; /* of jitter; 0: drawn from the service's seed, so a simulation replays */
	struct tw_limiter_hooks hooks;
};

/*
 * Makes a limiter. The service (and executor) must outlive it and refuse to close meanwhile (-EBUSY). *out is written on
 * success only.
 *
 * Returns:
 *   0           made
 *   -EINVAL     an argument is NULL, a knob is out of range, a flag is unknown; or max_concurrency jobs that block would occupy
 *               the whole executor: a pool needs max_workers above it, a strand runs one at a time. Set TW_LIMITER_NONBLOCKING if they
 *               do not block. Inline, manual and foreign executors are not checked
 *   -E2BIG      the config has unknown non-zero bytes
 *   -ENOMEM     no memory
 *   -ESHUTDOWN  service or pool is closed
 *   -EPERM      forked child
 */
TW_API int tw_limiter_create(tw_limiter **out, tw_service *service, const struct tw_limiter_config *config);

/*
 * Frees the limiter and its kept results. NULL is allowed.
 *
 * Hand-overs to the executor may still be under way when all jobs have settled. Destroy sleeps until they have come back: what runs, and what
 * is queued on a pool or for the tick thread, at most a second; what is queued on another executor, 20 ms; not at all
 * where the caller drives the service. Destroy also waits for other threads that are about to return from tw_job_wait,
 * tw_limiter_close or a submit. A thread may therefore call destroy until it answers 0.
 *
 * Returns:
 *   0         freed
 *   -EBUSY    jobs have not settled, attempts or callbacks have not ended, threads wait, or hand-overs are still out (if the caller
 *             drives the executor: drive it, and try again); nothing changed
 *   -EDEADLK  called from one of its own jobs or callbacks
 */
TW_API int tw_limiter_destroy(tw_limiter *limiter);

/*
 * Running jobs finish; once this has returned no attempt starts (none leaves the line) until tw_limiter_resume. Nobody is waited for: the
 * function of one that had left the line before may be entered a moment later, so wait until `running` (tw_limiter_stats) is 0
 * where no job may be under way. Both are harmless if they say nothing new. 0. -EINVAL: NULL.
 */
TW_API int tw_limiter_pause(tw_limiter *limiter);
TW_API int tw_limiter_resume(tw_limiter *limiter);

/*
 * Refuses new jobs, ends those that it has, and waits for them.
 *
 *   mode                       jobs that wait                         jobs that run
 *   TW_CLOSE_DROP              settle as dropped, on this thread      end after this attempt
 *   TW_CLOSE_DRAIN, _RUN       run, and are retried                   end, and are retried
 * When the timeout of a drain has passed, the jobs that still wait are dropped. A paused limiter drains nothing until
 * tw_limiter_resume. Several closes may be under way; TW_CLOSE_DROP ends a drain.
 *
 * Threads: any. Blocks at most timeout_ns, beside the callbacks of the dropped jobs.
 * Calls: `done` and `release` of the dropped jobs, on this thread.
 * Returns:
 *   0            all jobs have settled, nothing runs, idle listeners were called
 *   -ETIMEDOUT   some jobs still run; call again
 *   -EDEADLK     called from one of its jobs or callbacks with a timeout: nothing changed. Or only the calling thread could run
 *                what is left: the limiter refuses jobs
 *   -EINVAL      limiter is NULL; an unknown mode
 *   -EPERM       in a forked child
 */
TW_API int tw_limiter_close(tw_limiter *limiter, enum tw_close_mode mode, uint64_t timeout_ns);

/*
 * Calls fn(arg) once, when the limiter is idle: all that was added has settled, nothing runs. If that is so already, fn is called inside
 * this call. The exception: while listeners or the hook `idle` are being called, by this thread (this call comes from one of
 * them) or another, fn is called by that thread when they have returned. So a listener that listens again is called again after it
 * returns, never inside itself. Listeners are called in the order in which they came.
 *
 * Returns:
 *   0        fn has been, or will be called
 *   -EINVAL  an argument is NULL
 *   -ENOMEM  no memory
 */
TW_API int tw_limiter_on_idle(tw_limiter *limiter, tw_idle_fn *fn, void *arg);

/*
 * Waits until it is idle and listeners have been told. 0. -ETIMEDOUT. -EDEADLK: from one of its jobs or callbacks, or jobs wait for the
 * calling thread, which is the executor's only one; not if timeout_ns is 0.
 * -EINVAL: NULL.
 */
TW_API int tw_limiter_wait_idle(tw_limiter *limiter, uint64_t timeout_ns);

/*
 * Growth starts jobs at once; shrinking stops none: what runs beyond the limit ends first. 0. -EINVAL: NULL, 0 (that is pause), above
 * 2^30, or more than the executor can hold (as tw_limiter_create). -ENOMEM.
 */
TW_API int tw_limiter_set_max_concurrency(tw_limiter *limiter, uint32_t max_concurrency);

/* added == succeeded + failed + cancelled + timed_out + dropped + pending + running - late, in each snapshot. */
struct tw_limiter_stats {
	size_t size; /* in: sizeof(struct tw_limiter_stats) */
	uint64_t max_concurrency;
	uint64_t running; /* permits that are out */
	uint64_t late;    /* of these: of jobs that have settled as timed out */
	uint64_t debt;    /* of these: beyond max_concurrency */
	uint64_t pending; /* in line, waiting for a retry, or between an attempt and what follows on it */
	uint64_t retrying;

	uint64_t added;
	uint64_t succeeded, failed, cancelled, timed_out, dropped;
	uint64_t retried;             /* attempts that were followed by a retry */
	uint64_t rejected;            /* submits answered -EAGAIN, -ETIMEDOUT or -EBUSY */
	uint64_t refused_completions; /* second ones, and of synchronous jobs */

	uint64_t queue_mean_ns, run_mean_ns;
	struct tw_latency queue; /* each stay in line that ended with a start */
	struct tw_latency run;   /* each attempt that has ended */
};

/* A snapshot. -EINVAL: NULL, or size too small for max_concurrency. Sizes as tw_service_stats. */
TW_API int tw_limiter_stats(tw_limiter *limiter, struct tw_limiter_stats *out);

#ifdef __cplusplus
}
#endif
#endif
