/*
 * Timers with options: series, releases, executors, persistent timers.
 *
 *     struct tw_period period = TW_INIT(tw_period);
 *     period.period_ns = 10 * TW_SECOND;
 *     tw_schedule_every(service, &period, send_heartbeat, connection, &heartbeat);
 *
 * A handle from here works in all calls of timer.h: tw_reset, tw_cancel, tw_is_pending and so on.
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
 * What a fixed-rate series does about instants that have passed without a run. The policy looks at
 * the clock when a run begins, and again when it has returned.
 *
 * A run begins late. The period is 10 ms, and the machine stalls from 0 to 45 ms. The instants 10,
 * 20, 30 and 40 have passed:
 *
 *   TW_MISSED_SKIP       one run at 45 for the instant 40, overruns 3; then 50, 60 ...
 *   TW_MISSED_COALESCE   the same
 *   TW_MISSED_BURST      runs at 45 for 10, 20, 30 and 40, overruns 0; then 50, 60 ...
 *
 * A run takes long. It begins at 10 ms and returns at 45 ms. The instants 20, 30 and 40 have passed
 * meanwhile:
 *
 *   TW_MISSED_SKIP       next run at 50, overruns 3; then 60, 70 ...
 *   TW_MISSED_COALESCE   a run at 45 for the instant 40, overruns 2; then 50, 60 ...
 *   TW_MISSED_BURST      runs at 45 for 20, 30 and 40, overruns 0; then 50, 60 ...
 *
 * An instant has passed when the clock has reached it. TW_FIXED_DELAY misses nothing: after a stall
 * there is one run, and the next one is due a period after its return.
 *
 * With BURST a series whose runs take longer than its period falls behind without limit. late_ns of
 * tw_current says how far.
 */
enum tw_missed_policy { TW_MISSED_SKIP = 0, TW_MISSED_COALESCE = 1, TW_MISSED_BURST = 2 };

/* A series. Its runs never overlap. tw_current tells a run how many instants were missed. */
struct tw_period {
	size_t size;        /* sizeof(struct tw_period) */
	uint64_t first_ns;  /* delay of the first run; 0: immediately */
	uint64_t period_ns; /* 1 .. TW_MAX_DELAY_NS; may be less than a tick */
	enum tw_period_mode mode;
	uint64_t count; /* runs after which the series ends; 0: it goes on without limit */
	enum tw_missed_policy missed;
	uint32_t reserved; /* 0 */
};

/*
 * Schedules a series. The handle stays the same over all its runs. enum tw_missed_policy says which
 * runs follow if one takes longer than the period.
 *
 * Threads: as tw_schedule.
 * Returns: as tw_schedule, and
 *   -EINVAL   period is NULL, or its size too small; period_ns is 0; an unknown mode or policy
 *   -E2BIG    non-zero bytes beyond the known struct
 */
TW_API int tw_schedule_every(tw_service *service, const struct tw_period *period, tw_fn *fn,
			     void *arg, tw_timer *out);

/* -------------------------------------------------------------------- tasks */

/* Flags of struct tw_task, and of struct tw_strand_task. */
enum tw_task_flags {
	TW_TASK_AT = 1, /* when_ns is a deadline on the scale of tw_service_now, not a delay */
	TW_TASK_CONTEXT =
	    2, /* the context is `context`, not that of the calling thread (context.h) */

	/*
	 * A background timer: TW_CLOSE_DRAIN does not wait for it, and drops it when the last other
	 * timer has ended. TW_CLOSE_RUN runs it like any other. A series must have no `count`.
	 */
	TW_TASK_BACKGROUND = 4,

	/*
	 * A persistent timer: after a run it is disarmed, not ended. tw_reset arms it again, with
	 * the same handle, tw_disarm disarms it, tw_cancel ends it. No series. See tw_disarm.
	 */
	TW_TASK_PERSISTENT = 8
};

/*
 * A timer in full. Members that are 0 are not used. The struct is read during the call, so it may
 * be a local variable.
 */
struct tw_task {
	size_t size; /* sizeof(struct tw_task) */
	tw_fn *fn;
	void *arg;

	/*
	 * The delay; with TW_TASK_AT, the deadline. A series without TW_TASK_AT has 0 here, and its
	 * delay in first_ns. TW_NEVER with TW_TASK_PERSISTENT: created disarmed.
	 */
	uint64_t when_ns;
	uint32_t flags;    /* enum tw_task_flags */
	uint32_t reserved; /* 0 */

	/* NULL: a one-shot; else a series. Read during the call. first_ns is 0 with TW_TASK_AT. */
	const struct tw_period *period;

	/*
	 * Called once when the timer has ended; not if the schedule fails. timer.h says on which
	 * thread.
	 */
	tw_release_fn *release;

	/* Runs this timer in place of the service's executor. It must outlive the service. */
	tw_executor *executor;

	tw_group group; /* the timer becomes a member; {0}: of none */

	/*
	 * With TW_TASK_CONTEXT: the context of callback and release; NULL: none.
	 */
	void *context;

	/* For people: tw_service_dump and _liveness show it. Not copied: a static string. */
	const char *name;
};

/*
 * Schedules a timer in full.
 *
 * Threads: as tw_schedule.
 * Returns: as tw_schedule, and
 *   -EINVAL      task is NULL, or its size too small; unknown flags or policies; an executor
 *                whose ops are incomplete
 *   -E2BIG       non-zero bytes beyond the known struct
 *   -ESHUTDOWN   the group is closed
 *   -ENOENT      the group was destroyed
 */
TW_API int tw_schedule_task(tw_service *service, const struct tw_task *task, tw_timer *out);

/* ------------------------------------------------------------------- disarm */

/*
 * Disarms a persistent timer: it does not run until tw_reset arms it again. The handle stays valid.
 *
 * A persistent timer (TW_TASK_PERSISTENT) serves an object for its life: create it once, arm and
 * disarm it as often as you like, and end it once with tw_cancel.
 *
 *     struct tw_task task = TW_INIT(tw_task);
 *     task.fn = on_idle;
 *     task.arg = connection;
 *     task.flags = TW_TASK_PERSISTENT;
 *     task.when_ns = TW_NEVER;
 *     tw_schedule_task(service, &task, &connection->idle);
 *     ...
 *     tw_reset(service, connection->idle, 30 * TW_SECOND);     the client is silent
 *     tw_disarm(service, connection->idle);                    a request has come
 *     ...
 *     tw_cancel_wait(service, connection->idle, TW_FOREVER);   the connection ends
 *
 * A disarm costs one compare-and-swap. So does the next arming, as long as the timer has an entry
 * for that time or earlier; else the arming queues one. The driver drops an entry that it meets
 * while the timer is disarmed. The timer keeps its slot and its arg until it ends. Its release is
 * called once, when it ends. A callback that runs goes on. A reset earlier in that run no longer
 * counts.
 *
 * Threads: any, also its own callback. Never blocks.
 * Returns:
 *   TW_CANCELLED   it was armed, and will not run until it is armed again; one caller gets this
 *   TW_DISARMED    it was not armed, and does not run
 *   TW_RUNNING     the callback runs now: the timer is disarmed afterwards, or it ends, if it was
 *                  cancelled in this run; or its release runs
 *   TW_GONE        the timer has ended, or never was
 *   -EINVAL        service is NULL; the timer is not persistent
 *   -EPERM         in a forked child
 */
TW_API int tw_disarm(tw_service *service, tw_timer timer);

#ifdef __cplusplus
}
#endif
#endif
