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
 * Counters and gauges of a service.
 *
 * While the service is quiet, scheduled == fired + cancelled + dropped + pending + disarmed (G3). A
 * timer whose callback or release runs is in none of these until it has ended, or is armed or
 * disarmed again. A snapshot that is taken while other threads work may differ by what is in
 * flight.
 */
struct tw_service_stats {
	size_t size; /* in: sizeof(struct tw_service_stats) */

	uint64_t scheduled; /* accepted timers; a periodic one counts once */
	uint64_t fired;     /* ended by having run; a series: after its last run */
	uint64_t cancelled;
	uint64_t dropped; /* by a close */
	uint64_t pending; /* armed, as tw_is_pending says; counted from the timers themselves */

	uint64_t rejected; /* schedules that returned an error other than bad arguments */
	uint64_t runs;     /* callbacks that have returned */
	uint64_t overruns; /* nominal instants that periodic timers missed */
	/*
	 * Successful tw_reset, tw_reset_at, tw_reset_earlier and tw_reset_earlier_at. An answer
	 * TW_RESET_KEPT does not count.
	 */
	uint64_t resets;
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

	uint64_t groups;        /* groups that exist */
	uint64_t group_members; /* timers that are members of a group, and have not ended */
	uint64_t disarmed;      /* persistent timers that are not armed: they are not pending */
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
 * Prints statistics as a table for people. An older or newer size is fine, as with
 * tw_service_stats: members that the struct does not have are printed as 0.
 *
 * Threads: any.
 * Returns:
 *   0         printed
 *   -EINVAL   an argument is NULL, or stats->size is smaller than one counter
 */
TW_API int tw_service_stats_print(const struct tw_service_stats *stats, FILE *out);

/* ------------------------------------------------------------ distributions */

enum { TW_HISTOGRAM_BUCKETS = 496 };

/*
 * A distribution of durations in buckets.
 *
 * There are eight buckets to each power of two, and each power of two is a bound. The bounds are
 * the same in every process and every version. So the distributions of several processes can be
 * added, and an earlier reading of a distribution can be subtracted, bucket by bucket.
 * Bucket i counts durations up to, in nanoseconds:
 *
 *   i < 8    i + 1
 *   i < 495  2^o + (i % 8 + 1) * 2^(o - 3), with o = i / 8 + 2
 *   495      without limit
 *
 * The struct stays as it is: it can be stored, or sent to another process of the same byte order.
 */
struct tw_histogram {
	uint64_t count;  /* the sum of the buckets */
	uint64_t sum_ns; /* of all durations; from a running service perhaps a few ahead of count */
	uint64_t max_ns; /* the longest duration */
	uint64_t buckets[TW_HISTOGRAM_BUCKETS];
};

/*
 * Returns the duration that `share` of all durations do not exceed: 0.99 asks for the 99th
 * percentile.
 *
 * An upper bound, at most 1/8 too high. A share below 0 counts as 0, above 1 as 1.
 *
 * Threads: any. Never blocks.
 * Returns: the duration, in nanoseconds; 0 if histogram is NULL or empty.
 */
TW_API uint64_t tw_histogram_percentile(const struct tw_histogram *histogram, double share);

/* The distributions of a service. 12 KB: think of the stack of small threads. */
struct tw_service_histograms {
	size_t size;                  /* in: sizeof(struct tw_service_histograms) */
	struct tw_histogram lateness; /* tick due to hand-over */
	struct tw_histogram wait;     /* hand-over to start of the callback */
	struct tw_histogram run;      /* duration of callbacks */
};

/*
 * Reads the distributions of a service since its creation. An earlier reading, subtracted, leaves
 * the window between the two.
 *
 * Set out->size. A larger or smaller size than the library's is fine: unknown members are set to 0
 * or left out.
 *
 * Threads: any. Never blocks.
 * Returns:
 *   0         *out is filled
 *   -EINVAL   NULL, or out->size has no room for `lateness`
 *   -ENOMEM   no memory
 *   -EPERM    in a forked child
 */
TW_API int tw_service_histograms(tw_service *service, struct tw_service_histograms *out);

/* ------------------------------------------------------------ what runs now */

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

	uint64_t running; /* user functions under way, of whatever kind */
	/* The one that began first, cast: to be named, not called. NULL: nothing runs. */
	tw_fn *longest_fn;
	void *longest_arg;         /* its argument */
	uint64_t longest_since_ns; /* when it began, or was first seen */
	uint64_t longest_ns;       /* and how long ago that is */
	uint32_t longest_thread;   /* its thread, as in ps -L, top -H and gdb */

	/* The service's pool; 0 without one, and after a close. */
	uint32_t pool_at_max;      /* 1: runs wait for a worker, and none is free (pool.h) */
	uint32_t pool_max_workers; /* max_workers of the pool */
	uint32_t reserved;         /* 0 */

	const char *longest_name; /* `name` of what runs longest; NULL: it has none */
	const char *overdue_name; /* likewise, of overdue_timer */
};

/*
 * Tells what a service does at this moment. Also works while the tick thread hangs.
 *
 * It sees timers, jobs, tasks and all other user code of the service and of the layers on it, and
 * the tasks of its pool: one run a thread. Of runs inside one another on one thread it sees the
 * outermost, for that run's service.
 *
 * The beginning of a run is known for timers, jobs and scheduler tasks. Other runs are dated by the
 * first call that sees them: ask twice. tw_service_stats_prometheus asks at each scrape.
 *
 * Threads: any. Never blocks. Costs a look at each slot in use, and at the lines of each thread.
 * Returns:
 *   0         *out is filled
 *   -EINVAL   NULL, or out->size is smaller than the first two members
 *   -EPERM    in a forked child
 */
TW_API int tw_service_liveness(tw_service *service, struct tw_service_liveness *out);

/* ------------------------------------------------------- listing and checks */

/*
 * A visitor of pending timers. fn and arg are what the timer would call. remaining_ns is the time
 * until it is due (0: due), a hint.
 */
typedef int tw_visit_fn(void *visitor_arg, tw_timer timer, tw_fn *fn, void *arg,
			uint64_t remaining_ns);

/*
 * Calls visit for each pending timer, in slot order, until it returns non-zero. Disarmed timers are
 * not pending.
 *
 * Timers that come or go meanwhile may be missed. The visitor may schedule and cancel.
 *
 * Threads: any. Calls: visit, on this thread.
 * Returns:
 *   any       what the visitor returned last; 0 without timers
 *   -EINVAL   service or visit is NULL
 *   -EPERM    in a forked child
 */
TW_API int tw_service_foreach(tw_service *service, tw_visit_fn *visit, void *visitor_arg);

/*
 * Lists what runs and what is pending, for people. The format may change.
 *
 *     service "http"
 *     running for 12.041 ms, thread 4711, "flush", fn flush_log, arg 0x55d0a1c2
 *     running for 3.200 ms, thread 4712, "lookup", fn server+0x1b40, arg 0x7f21c0
 *     slot 8 generation 9b1f0c22 pending, due in 250.000 ms, fn on_idle, arg 0x55d0a1c2
 *     slot 9 generation 9b1f0c23 disarmed, fn on_idle, arg 0x55d0a2d0
 *
 * First comes the service if it has a name, then the runs that tw_service_liveness sees,
 * then the pending timers in slot order, then the disarmed ones. A function that the program
 * does not export is shown as file+offset, for addr2line. Quotes, backslashes and bytes of a name
 * that are not printable UTF-8 are escaped.
 *
 * Threads: any.
 * Returns:
 *   0         written
 *   -EINVAL   an argument is NULL
 *   -EPERM    in a forked child
 */
TW_API int tw_service_dump(tw_service *service, FILE *out);

/*
 * Checks the invariants of a service that is quiet.
 *
 * Quiet means that no call on it and no callback of it is under way; else the result means nothing.
 * The driver is held still meanwhile. Runs that are still at the executor are waited for, 0.1 s at
 * most; if they are still out then, totals are not compared.
 *
 * Threads: any.
 * Returns:
 *   0         all hold
 *   -EFAULT   one does not; `why` (may be NULL) says which, in at most why_size bytes
 *   -EBUSY    called from a callback that the driver runs: call it from another thread
 *   -EINVAL   service is NULL
 *   -EPERM    in a forked child
 */
TW_API int tw_service_validate(tw_service *service, char *why, size_t why_size);

#ifdef __cplusplus
}
#pragma GCC diagnostic pop
#endif
#endif
