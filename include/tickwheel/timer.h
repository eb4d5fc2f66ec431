/*
 * Timers: schedule timers that run once (oneshot), move and cancel timers. task.h has options.
 *
 * May I free arg?
 *
 *   result            timer without a release            timer with a release
 *   TW_CANCELLED      yes                                the release has been called: it owns arg
 *   TW_FINISHED       yes                                the release has been called
 *   TW_GONE           yes: the callback has returned,    the release has been called
 *                     or never runs
 *   TW_RUNNING        no                                 no
 *   TW_SELF           as the callback's last step        no: the release follows
 *
 * How a timer ends (each ends in exactly one of these ways):
 *
 *   cause                              fate               thread of the release     counter
 *   its last run has returned (1)      TW_FATE_FIRED      the one that ran it       fired
 *   cancelled before a claim           TW_FATE_CANCELLED  the canceller             cancelled
 *   cancelled while it ran (2)
 *     a one-shot, not re-armed         TW_FATE_FIRED      the one that ran it       fired
 *     a series, persistent, re-armed   TW_FATE_CANCELLED  the one that ran it       cancelled
 *   TW_CLOSE_DROP, or a drain's end,
 *     before a claim                   TW_FATE_DROPPED    the closer                dropped
 *   TW_CLOSE_RUN                       TW_FATE_FIRED      the one that ran it       fired
 *
 *   (1) A persistent timer ends this way only if TW_CLOSE_RUN or TW_CLOSE_DROP has begun meanwhile.
 *   (2) A cancel of its group is a cancel.
 */
#ifndef TICKWHEEL_TIMER_H
#define TICKWHEEL_TIMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "version.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_service tw_service; /* service.h */

/*
 * A callback, on the executor. It may block, unless the executor is the inline one. It must not
 * longjmp, throw, be cancelled or end its thread.
 */
typedef void tw_fn(void *arg);

/*
 * Handle of a timer: a value, copied freely and kept as long as you like. All-zero is "no timer".
 */
typedef struct tw_timer {
	uint64_t id;
} tw_timer;

/* As a timeout: without limit. */
#define TW_FOREVER UINT64_MAX

/* The longest delay, and the latest deadline after the service's creation: 146 years. */
#define TW_MAX_DELAY_NS (UINT64_C(1) << 62)

/* Results of cancels and of tw_disarm. After which of them arg may be freed: timer.h. */
enum tw_outcome {
	/*
	 * The timer will not run (again). At most one of several concurrent cancels returns this;
	 * none does if the callback was already running.
	 */
	TW_CANCELLED = 0,
	TW_GONE = 1,     /* the timer has ended, or never was */
	TW_RUNNING = 2,  /* its callback or its release is running */
	TW_FINISHED = 3, /* tw_cancel_wait: one of them was running, and has returned */
	TW_SELF = 4,     /* tw_cancel_wait: called from the timer's own callback or release */
	TW_DISARMED = 5  /* tw_disarm: the timer was disarmed already, and does not run */
};

/* How a timer ended, for its release. */
enum tw_fate {
	TW_FATE_FIRED = 0,
	TW_FATE_CANCELLED = 1,
	TW_FATE_DROPPED = 2 /* by a close */
};

/*
 * Called once when a timer has ended: the place to free arg. It runs on the thread of the cancel,
 * the close or the run that ended the timer, and may block where that thread may.
 */
typedef void tw_release_fn(void *arg, enum tw_fate fate);

/* ----------------------------------------------------------------- schedule */

/*
 * Schedules fn(arg) to run once, after delay_ns, on the executor, never inside this call.
 *
 * *out (may be NULL) is written before the timer is published: its callback may read it. The timer
 * outlives the calling thread. After an error except -EINVAL and -E2BIG, *out is 0: "no timer".
 *
 * Returns:
 *   0            scheduled
 *   -ERANGE      the delay or period is above TW_MAX_DELAY_NS, or the deadline is more than that
 *                after the service's creation
 *   -EAGAIN      max_timers timers exist, or lane_entries entries of this thread wait for the
 *                driver: raise the knob, or try again after the driver has run
 *   -ENOMEM      no memory, or no address space (`ulimit -v`)
 *   -ESHUTDOWN   the service is closed
 */
TW_API int tw_schedule(tw_service *service, uint64_t delay_ns, tw_fn *fn, void *arg, tw_timer *out);

/*
 * Schedules fn(arg) to run once, at a deadline on the scale of tw_service_now. Reads no clock. If
 * the instant has passed, the run is due immediately. *out: as tw_schedule.
 *
 * Returns: as tw_schedule.
 */
TW_API int tw_schedule_at(tw_service *service, uint64_t deadline_ns, tw_fn *fn, void *arg,
			  tw_timer *out);

/* -------------------------------------------------------------------- reset */

/*
 * Moves an armed timer to delay_ns from now. The handle stays valid.
 *
 * From the timer's own callback it re-arms the timer, a one-shot too: it is armed when the callback
 * has returned, and the delay counts from the call. It arms a disarmed persistent timer; if its
 * callback runs, on any thread, the timer is armed afterwards.
 *
 * Returns:
 *   0            moved, or armed
 *   -ENOENT      the timer has ended, or its release runs
 *   -EBUSY       its callback is running on another thread: reset it there, or schedule another.
 *                Never for a persistent timer
 *   -ECANCELED   the timer was cancelled, and ends after this run: called from its own callback, or
 *                for a persistent timer from any thread
 *   -ERANGE      the delay is above TW_MAX_DELAY_NS, or the deadline is more than that after the
 *                service's creation
 *   -EAGAIN, -ENOMEM   no room for an entry, which a move to an earlier time needs, and an arming
 *                may need: try again
 *   -ESHUTDOWN   the service is closed. In a drain, only for a disarmed timer
 */
TW_API int tw_reset(tw_service *service, tw_timer timer, uint64_t delay_ns);

/*
 * Moves an armed timer to an instant on the scale of tw_service_now. Reads no clock.
 *
 * Returns: as tw_reset.
 */
TW_API int tw_reset_at(tw_service *service, tw_timer timer, uint64_t deadline_ns);

/* Result of tw_reset_earlier: the timer is due at that time already, or before. */
enum { TW_RESET_KEPT = 1 };

/*
 * Moves an armed timer to delay_ns from now, but only if that is earlier, in ticks. Of several
 * threads, the one with the earliest deadline wins.
 *
 * From the timer's own callback it re-arms a one-shot, unless it is re-armed for that time or
 * earlier. A series then runs next at the earlier of its own instant and this one. A persistent
 * timer that is not armed is armed.
 *
 * Returns: as tw_reset, and
 *   0               moved to earlier, or re-armed
 *   TW_RESET_KEPT   not moved: the timer is due at that tick, or before
 */
TW_API int tw_reset_earlier(tw_service *service, tw_timer timer, uint64_t delay_ns);

/* ------------------------------------------------------------------- cancel */

/*
 * Cancels a timer, unless a worker has claimed its run. It wins also when the timer has expired and
 * waits in the pool's queue (G4). Do not free arg after TW_RUNNING: use tw_cancel_wait.
 *
 * Calls: the release, on this thread, if the result is TW_CANCELLED.
 * Returns:
 *   TW_CANCELLED   the callback will not run (again)
 *   TW_RUNNING     the callback or the release runs now, perhaps on this thread. The timer ends
 *                  after this run: its callback can no longer re-arm it
 *   TW_GONE        the timer has ended, or never was
 */
TW_API int tw_cancel(tw_service *service, tw_timer timer);

/*
 * Cancels a timer, and waits for its callback and release if they run. After any result except
 * TW_RUNNING and TW_SELF nothing of the timer runs, and what the callback wrote is visible. Hold no
 * lock that the callback or the release takes.
 *
 * Blocks: at most timeout_ns.
 * Calls: the release, on this thread, if the result is TW_CANCELLED.
 * Returns: as tw_cancel, and
 *   TW_FINISHED   the callback or the release was running, and has returned
 *   TW_RUNNING    the callback or the release still runs after timeout_ns
 *   TW_SELF       called from the timer's own callback or release; it will not run again
 *   -EDEADLK      called from a release that a cancel of the timer's group calls: this thread calls
 *                 the timer's release afterwards
 */
TW_API int tw_cancel_wait(tw_service *service, tw_timer timer, uint64_t timeout_ns);

/*
 * Tells whether a timer waits to run: a hint. A disarmed timer and a running one do not.
 *
 * Returns: true if it waits; false if not.
 */
TW_API bool tw_is_pending(tw_service *service, tw_timer timer);

/*
 * Tells the time until a timer is due, exact to the tick: a hint.
 *
 * Returns:
 *   0         *out_ns is written; 0 means that the timer is due
 *   -ENOENT   the timer is not pending
 */
TW_API int tw_remaining(tw_service *service, tw_timer timer, uint64_t *out_ns);

/* --------------------------------------------------- from inside a callback */

/*
 * Returns the timer whose callback or release the calling thread runs.
 *
 * Returns: the timer; outside of callbacks and releases, "no timer".
 */
TW_API tw_timer tw_self(void);

/* What the calling thread runs. Later versions may add members at the end. */
struct tw_run_info {
	size_t size;
	tw_timer timer;    /* as tw_self; "no timer" in a task of a strand */
	uint64_t overruns; /* instants that the series missed since its last run */
	uint64_t late_ns;  /* since the series' instant, or the tick of the deadline; else 0 */
	bool closing;      /* TW_CLOSE_RUN runs the timer, perhaps before its time */
};

/*
 * Describes the innermost callback that the calling thread runs. Reads no clock.
 *
 * Returns:
 *   1         inside a callback or release of a timer, or a run of a strand's series; *out
 *             describes it
 *   0         outside; all members of *out except size are 0
 *   -EINVAL   out->size is too small for `timer`
 */
TW_API int tw_current(struct tw_run_info *out);

#ifdef __cplusplus
}
#endif
#endif
