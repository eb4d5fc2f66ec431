/*
 * The limiter: runs at most n jobs at a time, with retry and backoff, timeouts and a rate. Other
 * jobs, at most max_pending, wait in order of priority. The jobs are in job.h.
 *
 *     struct tw_limiter_config config = TW_INIT(tw_limiter_config);
 *     config.max_concurrency = 8;
 *     tw_limiter *limiter;
 *     tw_limiter_create(&limiter, service, &config);
 *     tw_limiter_submit(limiter, fetch, page, NULL);
 *     tw_limiter_wait_idle(limiter, TW_FOREVER);
 *
 * A job settles as timed out in time also if every worker blocks, in a job or in a callback.
 * tickwheel_limiter(7) has executors, times and threads.
 */
#ifndef TICKWHEEL_LIMITER_H
#define TICKWHEEL_LIMITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "executor.h"
#include "job.h"
#include "service.h"
#include "stats.h"
#include "version.h"

#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a struct and a function have one name */
extern "C" {
#endif

/* ------------------------------------------------------------------- create */

/*
 * Called when the limiter is idle, with the results that it collects, valid during the call.
 * tw_limiter_on_idle says on which thread; it may block that thread.
 */
typedef void tw_idle_fn(void *idle_arg, const struct tw_job_result *results, size_t n);

/* Kinds of events of a limiter. */
enum tw_limiter_event_kind {
	TW_LIMITER_EVENT_STARTED = 1, /* an attempt's function is called next */
	TW_LIMITER_EVENT_RETRIED = 2, /* an attempt has failed, and the job waits for delay_ns */
	TW_LIMITER_EVENT_SETTLED = 3, /* the job has settled; before its `done` */
	TW_LIMITER_EVENT_IDLE = 4     /* the limiter is idle; before idle listeners */
};

/* Something that happens in a limiter. Members that its kind does not name are 0. */
struct tw_limiter_event {
	enum tw_limiter_event_kind kind;
	uint32_t attempt;                   /* STARTED, RETRIED: that attempt; from 1 */
	tw_job job;                         /* all but IDLE: as of the submit */
	uint64_t id;                        /* the same: as in struct tw_job_result */
	uint64_t delay_ns;                  /* RETRIED */
	const struct tw_job_result *result; /* SETTLED: valid during the call */
};

/* Called for each event, with no lock held, on the thread where it happens, which it may block. */
typedef void tw_limiter_event_fn(void *event_arg, const struct tw_limiter_event *event);

/* Flags of a limiter: tw_limiter_config.flags. */
enum tw_limiter_flags {
	TW_LIMITER_COLLECT = 1,        /* collects results for idle listeners; 56 bytes each */
	TW_LIMITER_PAUSED_REFUSES = 2, /* while paused, submits return -EBUSY; else jobs wait */
	TW_LIMITER_NONBLOCKING =
	    8, /* no job blocks: max_concurrency may exceed the executor's threads */
	TW_LIMITER_PAUSED = 32,  /* created paused: see tw_limiter_set_paused */
	TW_LIMITER_NO_QUEUE = 16 /* -EAGAIN if a job cannot start now; max_pending is 0 */
};

/* Knobs of a limiter. All but max_concurrency may be 0. */
struct tw_limiter_config {
	size_t size;
	uint32_t max_concurrency; /* permits; 1 .. 2^30 */
	uint32_t flags;
	tw_executor *executor; /* runs the jobs; NULL: the service's. Outlives the limiter */

	/*
	 * Jobs that may wait, in line or for a retry: 1 .. 2^28; 0: 2^28. Jobs that can start do
	 * not count. Beyond it a submit returns -EAGAIN, or waits for room (wait_ns).
	 */
	uint32_t max_pending;

	/* At most rate_starts (1 .. 2^20) attempts start in any span of rate_interval_ns. */
	uint32_t rate_starts;
	uint64_t rate_interval_ns; /* as of tw_limiter_set_rate; 0 with rate_starts 0 */

	uint64_t seed;              /* of jitter; 0: drawn from the service's seed */
	tw_limiter_event_fn *event; /* or NULL */
	void *event_arg;

	/* For the dump; not copied. */
	const char *name;
};

/*
 * Creates a limiter. Service and executor must outlive it; they return -EBUSY to a close meanwhile.
 *
 * Returns:
 *   0            *out is the limiter
 *   -EINVAL      a knob is out of range; an unknown flag; or jobs that block could occupy the whole
 *                pool: it needs max_workers above max_concurrency. Strands, inline, manual and
 *                foreign executors are not checked
 *   -ENOMEM      no memory
 *   -ESHUTDOWN   the service or the pool is closed
 */
TW_API int tw_limiter_create(tw_limiter **out, tw_service *service,
			     const struct tw_limiter_config *config);

/*
 * Frees the limiter and its kept results. NULL is allowed.
 *
 * Returns:
 *   0          freed
 *   -EBUSY     jobs have not settled, callbacks run, or threads wait: close it first, and call
 *              again
 *   -EDEADLK   called from one of its jobs or callbacks
 */
TW_API int tw_limiter_destroy(tw_limiter *limiter);

/* ------------------------------------------------------------- pause, close */

/*
 * Pauses the limiter, or resumes it. While it is paused no attempt starts; running jobs finish.
 *
 * Returns:
 *   0   paused or resumed
 */
TW_API int tw_limiter_set_paused(tw_limiter *limiter, bool paused);

/*
 * Refuses new jobs, ends those that it has, and waits for them. At the timeout of a drain, the jobs
 * that still wait are dropped. With timeout 0 a drain only begins, and drops none: afterwards
 * tw_limiter_on_idle tells when it is over. A job or a callback of the limiter may call it so.
 *
 *   mode                       jobs that wait                         jobs that run
 *   TW_CLOSE_DROP              settle as dropped, on this thread      finish; no retry follows
 *   TW_CLOSE_DRAIN, _RUN       run, and are retried                   finish, and are retried
 *
 * Blocks: at most timeout_ns, plus the time of the dropped jobs' callbacks.
 * Calls: `done` and `release` of the dropped jobs, and callbacks that wait for the executor, on
 * this thread.
 * Returns:
 *   0            all jobs have settled, nothing runs, idle listeners were called
 *   -ETIMEDOUT   some jobs still run, or in a drain with timeout 0 wait
 *   -EDEADLK     called from one of its jobs or callbacks, and timeout_ns is not 0: call from
 *                another thread
 *   -EINVAL      an unknown mode
 */
TW_API int tw_limiter_close(tw_limiter *limiter, enum tw_close_mode mode, uint64_t timeout_ns);

/* --------------------------------------------------------------------- idle */

/*
 * Calls fn once when the limiter is idle: all that was added has settled, and nothing runs. If it
 * is idle already, fn is called inside this call; otherwise the thread that ends the last job calls
 * it.
 *
 * Calls: fn, on this thread, if the limiter is idle.
 * Returns:
 *   0         fn has been, or will be called
 *   -ENOMEM   no memory
 */
TW_API int tw_limiter_on_idle(tw_limiter *limiter, tw_idle_fn *fn, void *arg);

/*
 * Waits until the limiter is idle and its listeners have been called.
 *
 * Blocks: at most timeout_ns.
 * Returns:
 *   0            it was idle
 *   -ETIMEDOUT   it was not
 *   -EDEADLK     called from one of its jobs or callbacks; not with timeout 0
 */
TW_API int tw_limiter_wait_idle(tw_limiter *limiter, uint64_t timeout_ns);

/* ------------------------------------------------------- change, statistics */

/*
 * Changes the number of permits. Growth starts jobs; shrinking stops none.
 *
 * Returns:
 *   0         changed
 *   -EINVAL   0; above 2^30; more than the executor can hold (tw_limiter_create)
 */
TW_API int tw_limiter_set_max_concurrency(tw_limiter *limiter, uint32_t max_concurrency);

/*
 * Sets or changes the rate: at most `starts` attempts start in any span of interval_ns. A token
 * that is out returns one new interval after its attempt started.
 *
 * With interval_ns TW_FOREVER no token returns by itself: each such call refills the bucket, from
 * which `starts` attempts may start. With both 0 the limiter has no rate.
 *
 * Returns:
 *   0         changed
 *   -EINVAL   starts is above 2^20, or 0 with an interval; interval_ns is not 1 .. TW_MAX_DELAY_NS
 *             or TW_FOREVER, or 0 with starts
 *   -ENOMEM   no memory
 */
TW_API int tw_limiter_set_rate(tw_limiter *limiter, uint32_t starts, uint64_t interval_ns);

/*
 * Gauges and counters. In each snapshot, added == succeeded + failed + cancelled + timed_out +
 * dropped + pending + running - late.
 */
struct tw_limiter_stats {
	size_t size;
	uint64_t max_concurrency;
	uint64_t running; /* attempts in progress */
	uint64_t late;    /* of these: of jobs that have timed out */
	uint64_t permits; /* that running attempts have */
	uint64_t debt;    /* of these: beyond max_concurrency */
	uint64_t pending; /* in line, waiting for a retry, or between two attempts */
	uint64_t retrying;

	uint64_t added;
	uint64_t succeeded, failed, cancelled, timed_out, dropped;
	uint64_t retried;             /* attempts that were followed by a retry */
	uint64_t rejected;            /* submits that returned -EAGAIN, -ETIMEDOUT or -EBUSY */
	uint64_t refused_completions; /* second ones, and of synchronous jobs */

	uint64_t queue_mean_ns, run_mean_ns;
	struct tw_latency queue; /* each stay in line that ended with a start */
	struct tw_latency run;   /* each attempt that has ended */
};

/*
 * Reads a limiter's statistics.
 *
 * Returns:
 *   0         *out is filled
 *   -EINVAL   the size is too small for max_concurrency
 */
TW_API int tw_limiter_stats(tw_limiter *limiter, struct tw_limiter_stats *out);

#ifdef __cplusplus
}
#pragma GCC diagnostic pop
#endif
#endif
