/* Statistics, listings and checks of a service. */
#ifndef TICKWHEEL_STATS_H
#define TICKWHEEL_STATS_H

#include <stdint.h>
#include <stdio.h>

#include "service.h"

#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a struct and a function have one name */
extern "C" {
#endif

/* A distribution of durations. A percentile is an upper bound, at most 1/8 too high. */
struct tw_latency {
	uint64_t count;
	uint64_t p50_ns, p99_ns, p999_ns, max_ns;
};

/*
 * Counters and gauges of a service. While it is quiet, scheduled == fired + cancelled + dropped +
 * pending + disarmed (G3).
 */
struct tw_service_stats {
	size_t size;

	uint64_t scheduled; /* a series counts once */
	uint64_t fired;     /* ended after their last run */
	uint64_t cancelled;
	uint64_t dropped; /* by a close */
	uint64_t pending; /* armed, as tw_is_pending says */

	uint64_t rejected;     /* schedules that returned an error, except -EINVAL */
	uint64_t runs;         /* callbacks that have returned */
	uint64_t overruns;     /* instants that series missed */
	uint64_t resets;       /* that returned 0, of all four kinds */
	uint64_t resets_eager; /* of these: moved to earlier, and needed an entry */
	uint64_t refused;      /* hand-overs that an executor refused */
	uint64_t wakeups;      /* times the tick thread woke up */
	uint64_t ticks;        /* polls of the driver that drained or handed over something */
	uint64_t tick_cpu_ns;  /* CPU time of the tick thread in these polls */
	uint64_t tick_cpu_max_ns;
	uint64_t entries;       /* in the wheel, dead ones included */
	uint64_t dead_entries;  /* estimate: entries less pending timers */
	uint64_t retired_slots; /* slots whose generations are used up */
	uint64_t clock_steps;   /* the clock's steps back */
	uint64_t threads;       /* threads that have used the service and still live */
	uint64_t memory_bytes;  /* an upper bound */

	struct tw_latency lateness; /* tick due to hand-over */
	struct tw_latency wait;     /* hand-over to start of the callback */
	struct tw_latency run;      /* duration of callbacks */

	uint64_t groups;
	uint64_t group_members;
	uint64_t disarmed; /* persistent timers that are not armed */
};

/*
 * Reads a service's statistics, without a lock on a hot path.
 *
 * Returns:
 *   0         *out is filled
 *   -EINVAL   out->size is smaller than one counter
 */
TW_API int tw_service_stats(tw_service *service, struct tw_service_stats *out);

/* ------------------------------------------------------------ distributions */

enum { TW_HISTOGRAM_BUCKETS = 496 };

/*
 * A distribution of durations in buckets. The bounds are the same in every process and version:
 * distributions can be added, subtracted, stored and sent. Bucket i counts durations up to, in
 * nanoseconds:
 *
 *   i < 8    i + 1
 *   i < 495  2^o + (i % 8 + 1) * 2^(o - 3), with o = i / 8 + 2
 *   495      without limit
 */
struct tw_histogram {
	uint64_t count;
	uint64_t sum_ns; /* of all durations; from a running service perhaps a few ahead of count */
	uint64_t max_ns;
	uint64_t buckets[TW_HISTOGRAM_BUCKETS];
};

/*
 * Returns the duration that `share` (0 .. 1) of all durations do not exceed: 0.99 asks for the 99th
 * percentile. An upper bound, at most 1/8 too high.
 *
 * Returns: the duration; 0 if histogram is NULL or empty.
 */
TW_API uint64_t tw_histogram_percentile(const struct tw_histogram *histogram, double share);

/* The distributions of a service. 12 KB: mind the stack of small threads. */
struct tw_service_histograms {
	size_t size;
	struct tw_histogram lateness; /* tick due to hand-over */
	struct tw_histogram wait;     /* hand-over to start of the callback */
	struct tw_histogram run;      /* duration of callbacks */
};

/*
 * Reads the distributions of a service since its creation.
 *
 * Returns:
 *   0         *out is filled
 *   -EINVAL   out->size has no room for `lateness`
 *   -ENOMEM   no memory
 */
TW_API int tw_service_histograms(tw_service *service, struct tw_service_histograms *out);

/* ------------------------------------------------------------ what runs now */

/* What a service does now, on its clock. */
struct tw_service_liveness {
	size_t size;

	uint64_t now_ns;
	uint64_t
	    since_turn_ns; /* since the driver's last poll; grows while the tick thread sleeps */
	uint64_t turn_late_ns; /* how late the tick thread's planned poll is; 0: it is not late */

	uint64_t overdue;    /* timers whose tick has passed and that have not run */
	uint64_t overdue_ns; /* the oldest of them: since its tick; 0: none */
	tw_timer overdue_timer;

	uint64_t running;  /* user functions in progress, of whatever kind */
	tw_fn *longest_fn; /* the one that began first: not to be called. NULL: nothing runs */
	void *longest_arg;
	uint64_t longest_since_ns; /* when it began, or was first seen */
	uint64_t longest_ns;
	uint32_t longest_thread; /* its thread, as in ps -L, top -H and gdb */

	/* The service's pool; 0 without one, and after a close. */
	uint32_t pool_at_max; /* 1: runs wait for a worker, and none is free (pool.h) */
	uint32_t pool_max_workers;
	uint32_t reserved;

	const char *longest_name; /* `name` of what runs longest; NULL: it has none */
	const char *overdue_name;
};

/*
 * Tells what a service does at this moment: the user code of the service, its layers and its pool,
 * one run a thread. Works also while the tick thread hangs.
 *
 * Returns:
 *   0         *out is filled
 *   -EINVAL   out->size is smaller than the first two members
 */
TW_API int tw_service_liveness(tw_service *service, struct tw_service_liveness *out);

/* ------------------------------------------------------- listing and checks */

/*
 * A visitor of pending timers, on the calling thread; it may schedule and cancel, and may block. fn
 * and arg are what the timer would call. remaining_ns is the time until it is due (0: due), a hint.
 */
typedef int tw_visit_fn(void *visitor_arg, tw_timer timer, tw_fn *fn, void *arg,
			uint64_t remaining_ns);

/*
 * Calls visit for each pending timer, in slot order, until it returns other than 0. Timers that
 * come or go meanwhile may be missed.
 *
 * Calls: visit, on this thread.
 * Returns:
 *   any   what the visitor returned last; 0 without timers
 */
TW_API int tw_service_foreach(tw_service *service, tw_visit_fn *visit, void *visitor_arg);

/*
 * Prints the statistics that are not 0, the running callbacks, the pending and disarmed timers, and
 * the limiters, schedulers, semaphores and strands, for people. The format may change.
 *
 * Blocks: if the stream does.
 * Returns:
 *   0   written
 */
TW_API int tw_service_dump(tw_service *service, FILE *out);

/*
 * Checks the invariants of a quiet service: if a call on it or a callback is in progress, the
 * result means nothing.
 *
 * Blocks: 0.1 s at most, and while the driver works.
 * Returns:
 *   0         all hold
 *   -EFAULT   one does not; `why` (may be NULL) says which, in at most why_size bytes
 *   -EBUSY    called from a callback that the driver runs: call it from another thread
 */
TW_API int tw_service_validate(tw_service *service, char *why, size_t why_size);

#ifdef __cplusplus
}
#pragma GCC diagnostic pop
#endif
#endif
