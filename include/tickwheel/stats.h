/* Statistics, listings and checks of a service. */
#ifndef TICKWHEEL_STATS_H
#define TICKWHEEL_STATS_H

#include <stdint.h>
#include <stdio.h>

#include "service.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A distribution of durations. A percentile is an upper bound, at most 1/8 too high. */
struct tw_latency {
	uint64_t count;
	uint64_t p50_ns, p99_ns, p999_ns, max_ns;
};

/*
 * Counters and gauges of a service.
 *
 * While the service is quiet, scheduled == fired + cancelled + dropped + late_dropped + pending
 * (G3). A snapshot that is taken while other threads work may differ by what is in flight.
 */
struct tw_service_stats {
	size_t size; /* in: sizeof(struct tw_service_stats) */

	uint64_t scheduled; /* accepted timers; a periodic one counts once */
	uint64_t fired;     /* ended by having run; a series: after its last run */
	uint64_t cancelled;
	uint64_t dropped; /* by a close, or by TW_REFUSED_DROP */
	uint64_t pending; /* counted from the timers themselves */

	uint64_t rejected; /* schedules answered with an error other than bad arguments */
	uint64_t runs;     /* callbacks that have returned */
	uint64_t
	    overruns;    /* nominal instants that periodic timers missed, or dropped as too late */
	uint64_t resets; /* successful tw_reset and tw_reset_at */
	uint64_t
	    resets_eager; /* of these: needed an entry of their own, since they moved to earlier */
	uint64_t refused; /* hand-overs that an executor refused (each try counts) */
	uint64_t wakeups; /* times the tick thread woke up */
	uint64_t ticks;   /* polls of the driver that drained or handed over something */
	uint64_t tick_cpu_ns;     /* CPU time of the tick thread in these polls */
	uint64_t tick_cpu_max_ns; /* in the longest of them */
	uint64_t entries;         /* in the wheel, dead ones included */
	uint64_t dead_entries;    /* estimate: entries less pending timers */
	uint64_t retired_slots;   /* slots whose generations are used up */
	uint64_t clock_steps;     /* times the clock was seen to step back */
	uint64_t threads;         /* threads that have used the service and still live */
	uint64_t memory_bytes;    /* held by slots, records, chunks and lanes; an upper bound */

	struct tw_latency lateness; /* tick due to hand-over */
	struct tw_latency wait;     /* hand-over to start of the callback */
	struct tw_latency run;      /* duration of callbacks */

	uint64_t late_dropped; /* ended with TW_FATE_LATE */
};

/*
 * Reads a service's statistics.
 *
 * Set out->size. A larger or smaller size than the library's is fine: unknown members are set to 0
 * or left out. Costs a look at each slot in use (8 bytes a timer), and no lock on a hot path.
 *
 * Threads: any. Never blocks.
 * Returns:
 *   0         *out is filled
 *   -EINVAL   NULL, or out->size is smaller than one counter
 *   -ENOMEM   no memory
 *   -EPERM    in a forked child
 */
TW_API int tw_service_stats(tw_service *service, struct tw_service_stats *out);

/*
 * Prints statistics as a table for people.
 *
 * Threads: any.
 * Returns: 0; -EINVAL if an argument is NULL
 */
TW_API int tw_service_stats_print(const struct tw_service_stats *stats, FILE *out);

/* What kind of user code a run is. */
enum tw_run_kind {
	TW_RUN_KIND_NONE = 0,
	TW_RUN_KIND_TIMER = 1,          /* a timer's callback */
	TW_RUN_KIND_JOB = 2,            /* a limiter's job */
	TW_RUN_KIND_STRAND_TASK = 3,    /* a task that was submitted to a strand */
	TW_RUN_KIND_SCHEDULER_TASK = 4, /* a turn of a scheduler's task */
	TW_RUN_KIND_ACTION = 5,         /* an action, or an immediate */
	TW_RUN_KIND_POOL_TASK = 6, /* a pool's task; every service that uses the pool sees it */
	TW_RUN_KIND_SEMAPHORE = 7, /* a function that waited for a permit */
	TW_RUN_KIND_RELEASE = 8,   /* a release callback of a timer, job or strand task */
	TW_RUN_KIND_HOOK = 9, /* done, stop, a hook or a listener of a limiter; done of a task */
	TW_RUN_KIND_COMPLETION = 10 /* the completion of a group (tw_group_close_then) */
};

/* What a service does now. Times are on the service's clock. */
struct tw_service_liveness {
	size_t size; /* in: sizeof(struct tw_service_liveness) */

	uint64_t now_ns; /* of the look */
	uint64_t
	    since_turn_ns; /* since the driver's last poll; grows while the tick thread sleeps */
	uint64_t turn_late_ns; /* how late the tick thread's planned poll is; 0: it is not late */

	uint64_t overdue;       /* timers whose tick has passed and that have not run */
	uint64_t overdue_ns;    /* the oldest of them: since its tick; 0: none */
	tw_timer overdue_timer; /* that one */

	uint64_t running;  /* user functions under way, whatever their kind */
	tw_timer longest;  /* the run that began first: the timer, if it is one */
	tw_fn *longest_fn; /* its function, cast: to be named, not called; NULL: nothing runs */
	uint64_t longest_since_ns; /* when it began, or was first seen */
	uint64_t longest_ns;       /* and how long ago that is */
	uint32_t longest_thread;   /* its thread, as in ps -L, top -H and gdb */
	enum tw_run_kind longest_kind;

	/* The service's pool; 0 without one, after a close, and if on_stuck reports a run. */
	uint32_t pool_at_max;      /* 1: runs wait for a worker, and none is free (pool.h) */
	uint32_t pool_max_workers; /* max_workers of the pool */
};

/*
 * Tells what a service does at this moment. Also answers while the tick thread hangs.
 *
 * It sees timers, jobs, tasks and all other user code of the service and of the layers on it. Of
 * timers that run inside one another on one thread it sees the innermost; of other runs up to four
 * a thread.
 *
 * The beginning of a run is known for timers, jobs and scheduler tasks, and for all kinds if the
 * service has on_stuck. Other runs are dated by the first call that sees them: ask twice.
 *
 *
 * Threads: any. Never blocks. Costs a look at each slot in use, and at the lines of each thread.
 * Returns:
 *   0         *out is filled
 *   -EINVAL   NULL, or out->size is smaller than the first two members
 *   -EPERM    in a forked child
 */
TW_API int tw_service_liveness(tw_service *service, struct tw_service_liveness *out);

/*
 * Calls visit for each pending timer, in slot order, until it returns non-zero.
 *
 * Timers that come or go meanwhile may be missed. The visitor may schedule and cancel.
 *
 * Threads: any. Calls: visit, on this thread.
 * Returns: what the visitor returned last; 0 without timers; -EINVAL if service or visit is NULL
 */
TW_API int tw_service_foreach(tw_service *service, tw_visit_fn *visit, void *visitor_arg);

/*
 * Lists the pending timers, one line each: slot, generation, state, remaining time, fn, arg.
 *
 * Threads: any.
 * Returns: 0; -EINVAL if an argument is NULL
 */
TW_API int tw_service_dump(tw_service *service, FILE *out);

/*
 * Checks the invariants of a service that is quiet.
 *
 * Quiet means that no call on it and no callback of it is under way; else the answer means nothing.
 * The driver is held still meanwhile. Runs that are still at the executor are waited for, 0.1 s at
 * most; if they are still out then, totals are not compared.
 *
 * Threads: any.
 * Returns:
 *   0         all hold
 *   -EFAULT   one does not; `why` (may be NULL) says which, in at most why_size bytes
 *   -EBUSY    called from a callback that the driver runs
 *   -ENOMEM   no memory for a bit for each timer; nothing was checked
 *   -EINVAL   service is NULL
 */
TW_API int tw_service_validate(tw_service *service, char *why, size_t why_size);

#ifdef __cplusplus
}
#endif
#endif
