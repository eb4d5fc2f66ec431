/*
 * Seeing inside a service: counters, latencies, listings, a checker.
 */
#ifndef TICKWHEEL_STATS_H
#define TICKWHEEL_STATS_H

#include <stdint.h>
#include <stdio.h>

#include "service.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A distribution of durations, nanoseconds; percentiles are upper bounds, at most 1/8 too high. */
struct tw_latency {
	uint64_t count;
	uint64_t p50_ns, p99_ns, p999_ns, max_ns;
};

/*
 * At every quiet moment: scheduled == fired + cancelled + dropped + late_dropped + pending (G3). A snapshot taken while other
 * threads work may be out by what is in flight.
 */
struct tw_service_stats {
	size_t size; /* in: sizeof(struct tw_service_stats) */

	uint64_t scheduled; /* accepted timers; a periodic one counts once */
	uint64_t fired;     /* ended by having run; a series: after its last run */
	uint64_t cancelled;
	uint64_t dropped; /* dropped at close, or by a refusing executor under TW_REFUSED_DROP */
	uint64_t pending; /* counted from the timers themselves, not as the rest */

	uint64_t rejected;     /* schedules answered with an error other than bad arguments */
	uint64_t runs;         /* callbacks that have returned */
	uint64_t overruns;     /* nominal instants that periodic timers missed, or dropped as too late */
	uint64_t resets;       /* successful tw_reset and tw_reset_at */
	uint64_t resets_eager; /* of these: needed an entry of their own, since they moved to earlier */
	uint64_t refused;      /* hand-overs that an executor refused (each try counts) */
	uint64_t wakeups;      /* times the tick thread woke up */
	uint64_t ticks;        /* turns of the driver that drained or handed over something */
	uint64_t tick_cpu_ns;  /* CPU time of the tick thread in those turns, and in the longest of them */
	uint64_t tick_cpu_max_ns;
	uint64_t entries;       /* in the wheel, dead ones included */
	uint64_t dead_entries;  /* estimate: entries less pending timers */
	uint64_t retired_slots; /* slots whose generations are used up */
	uint64_t clock_steps;   /* times the clock was seen to step back */
	uint64_t threads;       /* threads that have used the service and still live */
	uint64_t memory_bytes;  /* held by slots, records, chunks, lanes; falls as it is given back (upper bound) */

	struct tw_latency lateness; /* tick due to hand-over */
	struct tw_latency wait;     /* hand-over to start of the callback */
	struct tw_latency run;      /* duration of callbacks */

	uint64_t late_dropped; /* ended with TW_FATE_LATE */
};

/*
 * Fills *out. No lock on any hot path, any thread, any time; costs a look at each slot in use (8 bytes a timer).
 * -ENOMEM. -EINVAL: NULL, or out->size smaller than one counter. A larger or smaller `size` than the library's is fine: what
 * the library does not know is set to 0, what the caller does not know is left out.
 */
TW_API int tw_service_stats(tw_service *service, struct tw_service_stats *out);

/* The same as a table for people. -EINVAL: NULL. */
TW_API int tw_service_stats_print(const struct tw_service_stats *stats, FILE *out);

/* What kind of user code a run is. */
enum tw_run_kind {
	TW_RUN_KIND_NONE = 0,
	TW_RUN_KIND_TIMER = 1,          /* a timer's callback */
	TW_RUN_KIND_JOB = 2,            /* a limiter's job */
	TW_RUN_KIND_STRAND_TASK = 3,    /* a task that was submitted to a strand */
	TW_RUN_KIND_SCHEDULER_TASK = 4, /* a turn of a scheduler's task */
	TW_RUN_KIND_ACTION = 5,         /* an action, or an immediate */
	TW_RUN_KIND_POOL_TASK = 6,      /* tw_pool_submit: shown to every service that uses the pool */
	TW_RUN_KIND_SEMAPHORE = 7,      /* a function that waited for a permit */
	TW_RUN_KIND_RELEASE = 8,        /* a release callback of a timer, job or strand task */
	TW_RUN_KIND_HOOK = 9,           /* done, stop, a hook or a listener of a limiter; done of a scheduler's task */
	TW_RUN_KIND_COMPLETION = 10     /* the completion of a group (tw_group_close_then) */
};

/* Is it alive, and if not, where does it hang? All times on the service's clock. */
struct tw_service_liveness {
	size_t size; /* in: sizeof(struct tw_service_liveness) */

	uint64_t now_ns; /* of the look */
	uint64_t
	    since_turn_ns; /* since the driver last turned the wheel; a sleeping tick thread rightly lets it grow */
	uint64_t
	    turn_late_ns; /* by how much the tick thread has missed the instant for which it planned its next turn; 0: it has not */

	uint64_t overdue;       /* timers whose tick has passed, not yet run; those in a worker's queue too */
	uint64_t overdue_ns;    /* the oldest of them: since its tick; 0: none */
	tw_timer overdue_timer; /* that one */

	uint64_t running;  /* user functions under way, whatever their kind */
	tw_timer longest;  /* the run that began first: the timer, if it is one */
	tw_fn *longest_fn; /* its function, cast; to be named, not called. NULL: nothing runs, or it has just ended */
	uint64_t longest_since_ns; /* when it began, or was first looked at; see tw_service_liveness */
	uint64_t longest_ns;       /* and how long ago that is */
	uint32_t longest_thread;   /* its thread: the system's number, as in ps -L, top -H and gdb */
	enum tw_run_kind longest_kind;

	/* The pool of the service, with any drive. 0 without a pool, after close, and in calls of on_stuck that report a run. */
	uint32_t pool_at_max;      /* 1: runs wait, and all of max_workers workers are inside runs;
	                            * or jobs of limiters wait, and all workers but one are inside such jobs */
	uint32_t pool_max_workers; /* max_workers of the pool */
};

/*
 * Fills *out with what the service does at this moment. Lock-free: also answers while the tick thread hangs.
 *
 * Which runs are seen: those of the service and of everything that stands on it (limiters, strands, schedulers, actions, semaphores), on
 * any thread; and plain tasks of its pool. Of timers that run inside one another on one thread the innermost is seen;
 * of other runs up to four on one thread.
 *
 * When a run began: known for timers, jobs and scheduler tasks, and for all kinds if the service has on_stuck. Other runs are dated by the first
 * look that meets them, so they may look younger than they are, never older. Ask twice to learn how long such a run has lasted.
 *
 * Timers 2^25 ticks or more away when last looked at are not looked at for `overdue`. A larger or smaller `size` than
 * the library's is fine, as with tw_service_stats.
 *
 * Threads: any. Never blocks. Costs a look at each slot in use (8 bytes a timer), and at the lines of each thread.
 * Returns:
 *   0          *out is filled
 *   -EINVAL    service or out is NULL, or out->size is smaller than the first two members
 *   -EPERM     in a forked child
 */
TW_API int tw_service_liveness(tw_service *service, struct tw_service_liveness *out);

/*
 * Calls visit for each pending timer, in slot order, until it returns non-zero, which is then the result; else 0.
 * Timers that come or go meanwhile may be missed or seen. remaining_ns is a hint, as tw_remaining's.
 * visit may schedule and cancel. -EINVAL: NULL service or visit.
 */
TW_API int tw_service_foreach(tw_service *service, tw_visit_fn *visit, void *visitor_arg);

/* Lists what is pending, one line a timer: slot, generation, state, remaining time, fn, arg. -EINVAL: NULL. */
TW_API int tw_service_dump(tw_service *service, FILE *out);

/*
 * Checks every invariant of a service that is quiet: no call on it, and no callback of it, is under way, or the
 * answer means nothing (nothing breaks). The driver is held still meanwhile, and what the service has handed to its executor, such as the
 * settling of a cancelled group, is waited for, 0.1 s at most; if it is still out then, or the caller is a callback, totals are not
 * compared. 0: all hold. -EINVAL: NULL.
 * -EFAULT: one does not; `why` (if not NULL, room for why_size bytes) says which.
 * -EBUSY: called from a callback that the driver runs itself.
 */
TW_API int tw_service_validate(tw_service *service, char *why, size_t why_size);

#ifdef __cplusplus
}
#endif
#endif
