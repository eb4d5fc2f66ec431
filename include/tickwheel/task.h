/*
 * Timers with options: series (an interval between runs), releases, executors, persistent timers.
 * All calls of timer.h work on them.
 *
 *     struct tw_period period = TW_INIT(tw_period);
 *     period.period_ns = 10 * TW_SECOND;
 *     tw_schedule_every(service, &period, send_heartbeat, connection, &heartbeat);
 */
#ifndef TICKWHEEL_TASK_H
#define TICKWHEEL_TASK_H

#include <stddef.h>
#include <stdint.h>

#include "executor.h"
#include "timer.h"
#include "version.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Handle of a group of timers (group.h), a value. All-zero is "no group". */
typedef struct tw_group {
	uint64_t id;
} tw_group;

/* As when_ns of a persistent timer: not armed yet. */
#define TW_NEVER UINT64_MAX

/* ------------------------------------------------------------------- series */

/* What the period of a series is counted from. */
enum tw_period_mode {
	TW_FIXED_RATE = 0, /* run n is due at first + n * period */
	TW_FIXED_DELAY = 1 /* the next run is due a period after the last one has returned */
};

/*
 * What a fixed-rate series does about instants that have passed without a run: one run for all
 * (SKIP, COALESCE), or one for each (BURST). tw_missed_policy(3) has a timeline.
 */
enum tw_missed_policy { TW_MISSED_SKIP = 0, TW_MISSED_COALESCE = 1, TW_MISSED_BURST = 2 };

/*
 * A series of runs, which never overlap. tw_current tells a run how many instants were missed.
 */
struct tw_period {
	size_t size;
	uint64_t first_ns;  /* delay of the first run; 0: immediately */
	uint64_t period_ns; /* 1 .. TW_MAX_DELAY_NS; may be less than a tick */
	enum tw_period_mode mode;
	uint64_t count; /* runs after which the series ends; 0: it goes on without limit */
	enum tw_missed_policy missed; /* 0: TW_MISSED_SKIP */
	uint32_t reserved;
};

/*
 * Schedules a series, under one handle. enum tw_missed_policy says which runs follow a late one.
 * *out: as tw_schedule.
 *
 * Returns: as tw_schedule, and
 *   -EINVAL   period's size is too small; period_ns is 0; an unknown mode or policy
 *   -E2BIG    in `period`
 */
TW_API int tw_schedule_every(tw_service *service, const struct tw_period *period, tw_fn *fn,
			     void *arg, tw_timer *out);

/*
 * Gives a series another period. The run that is armed stays where it is (tw_reset moves it); the
 * runs after it follow at the new period. From the series' own callback the change counts for the
 * next run, e.g. of a lease that was renewed for another time. A change from another thread while
 * the callback runs counts for the next run or for the one after it.
 *
 * Threads: any. Never blocks.
 * Returns:
 *   0            changed
 *   -ENOENT      the timer has ended, or its release runs
 *   -ECANCELED   the series was cancelled, and ends after the run that is in progress
 *   -EINVAL      period_ns is 0; the timer is no series
 *   -ERANGE      period_ns is above TW_MAX_DELAY_NS
 *   -ESHUTDOWN   the service is closed
 */
TW_API int tw_set_period(tw_service *service, tw_timer timer, uint64_t period_ns);

/* -------------------------------------------------------------------- tasks */

/* Flags of struct tw_task, and of struct tw_strand_task. */
enum tw_task_flags {
	TW_TASK_AT = 1,      /* when_ns is a deadline on the scale of tw_service_now, not a delay */
	TW_TASK_CONTEXT = 2, /* the context is `context`, not that of the calling thread */

	/* Background: TW_CLOSE_DRAIN does not wait for it. A series must have no `count`. */
	TW_TASK_BACKGROUND = 4,

	/* Persistent: disarmed after a run, not ended. No series. See tw_disarm. */
	TW_TASK_PERSISTENT = 8
};

/* A timer in full. The struct is read during the call, so it may be a local variable. */
struct tw_task {
	size_t size;
	tw_fn *fn;
	void *arg;

	/*
	 * The delay; with TW_TASK_AT, the deadline. A series without TW_TASK_AT has 0 here.
	 * TW_NEVER with TW_TASK_PERSISTENT: created disarmed.
	 */
	uint64_t when_ns;
	uint32_t flags; /* enum tw_task_flags */
	uint32_t reserved;

	/* NULL: a one-shot; else a series. first_ns is 0 with TW_TASK_AT. */
	const struct tw_period *period;

	tw_release_fn *release; /* called once when the timer has ended; timer.h: the thread */
	tw_executor *executor;  /* NULL: the service's. Must outlive the service */

	tw_group group; /* the timer becomes a member; {0}: of none */

	void *context;    /* with TW_TASK_CONTEXT: of callback and release; NULL: none */
	const char *name; /* for tw_service_dump and _liveness; not copied: a static string */
};

/*
 * Schedules a timer in full. *out: as tw_schedule.
 *
 * Returns: as tw_schedule, and
 *   -EINVAL      task's size is too small; unknown flags or policies; an executor whose ops are
 *                incomplete
 *   -E2BIG       in `task` or its period
 *   -ESHUTDOWN   the group is closed
 *   -ENOENT      the group was destroyed
 */
TW_API int tw_schedule_task(tw_service *service, const struct tw_task *task, tw_timer *out);

/* ------------------------------------------------------------------- disarm */

/*
 * Disarms a persistent timer: it does not run until tw_reset arms it again. The handle stays valid.
 *
 * A persistent timer (TW_TASK_PERSISTENT) serves an object for its life: create it once, arm and
 * disarm it, and end it with tw_cancel. A callback that runs goes on; a reset earlier in that run
 * no longer counts.
 *
 * Returns:
 *   TW_CANCELLED   it was armed, and will not run until it is armed again; one caller gets this
 *   TW_DISARMED    it was not armed, and does not run
 *   TW_RUNNING     the callback runs now: the timer is disarmed afterwards, or it ends, if it was
 *                  cancelled in this run; or its release runs
 *   TW_GONE        the timer has ended, or never was
 *   -EINVAL        the timer is not persistent
 */
TW_API int tw_disarm(tw_service *service, tw_timer timer);

#ifdef __cplusplus
}
#endif
#endif
