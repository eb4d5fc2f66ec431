/*
 * Actions: work, its state and its cancel handle in one object, which may schedule itself again.
 *
 *     static int blink(tw_action *action, void *lamp)
 *     {
 *             toggle(lamp);
 *             tw_action_schedule(action, lamp, 500 * TW_MILLISECOND);    (or not, and it rests)
 *             return 0;
 *     }
 *     tw_action *action;
 *     tw_action_create(&action, scheduler, blink, NULL);
 *     tw_action_schedule(action, lamp, 500 * TW_MILLISECOND);
 *     ...
 *     tw_action_destroy(action);
 *
 * The actions of one scheduler run one at a time, never nested. Destroy the actions first, then the
 * scheduler, then close the service (-EBUSY until then). tickwheel_action(7) has the rest.
 */
#ifndef TICKWHEEL_ACTION_H
#define TICKWHEEL_ACTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "executor.h"
#include "service.h"
#include "version.h"

#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a struct and a function have one name */
extern "C" {
#endif

typedef struct tw_action tw_action;
typedef struct tw_action_scheduler tw_action_scheduler;

/*
 * The work of an action, on the thread that its kind says, which it may block. Returns 0, or a
 * failure: any other number. A positive one cannot be mistaken for a call's own error.
 */
typedef int tw_action_fn(tw_action *action, void *state);

/*
 * Called once when the action has ended: the place to free what it used, and to destroy it. Runs
 * with no lock held, concurrently with other work of the scheduler, and may block.
 */
typedef void tw_action_release_fn(tw_action *action, void *state, enum tw_fate fate);

/* Handle of an immediate: a value. All-zero is "no immediate"; a stale handle is harmless. */
typedef struct tw_immediate {
	uint64_t id; /* from 1, in the order of submits */
} tw_immediate;

/* ---------------------------------------------------------------- schedulers */

/*
 * Kinds of schedulers: what a delay of 0 means. With a delay, all do as ASYNC, and need a service.
 */
enum tw_action_kind {
	TW_ACTION_KIND_ASYNC = 0, /* as soon as the service runs it */
	TW_ACTION_KIND_QUEUE = 1, /* inside tw_action_schedule, or after the action that runs */
	TW_ACTION_KIND_ASAP = 2,  /* in the next turn of an executor, or of your loop */
	TW_ACTION_KIND_FRAME = 3  /* in the next frame of the service, or of your vsync */
};

/* Flags of struct tw_action_scheduler_config. */
enum tw_action_flags {
	TW_ACTION_FLAG_BY_CALLER = 1, /* ASAP, FRAME: you drive, with tw_action_scheduler_flush */
	TW_ACTION_FLAG_CANCEL_BATCH =
	    2 /* a failure ends its flush and closes the rest of its batch */
};

/*
 * Called for a failure that no call returns: of work, or -ESHUTDOWN, if the executor is a closed
 * strand. `closed` counts the others of its batch that were closed. action is NULL for an
 * immediate. Never concurrent with the scheduler's work. It may block, and destroy the action.
 */
typedef void tw_action_failed_fn(void *failed_arg, tw_action *action, int failure, size_t closed);

/* Knobs of a scheduler. */
struct tw_action_scheduler_config {
	size_t size;
	enum tw_action_kind kind;
	uint32_t flags;
	tw_service *service;   /* ASYNC needs one, ASAP and FRAME unless by the caller */
	tw_executor *executor; /* runs its actions; needs a service, outlives it; NULL: its own */
	uint32_t frames_per_second; /* FRAME: 1 .. 1000; default 60 */
	uint32_t reserved;

	/*
	 * By the caller: called with true when a flush is wanted, with false when it no longer is;
	 * not after a flush. A lock is held: do not block, and do not call the scheduler.
	 */
	void (*wanted)(void *wanted_arg, bool wanted);
	void *wanted_arg;

	tw_action_failed_fn *failed;
	void *failed_arg;
};

/*
 * Creates a scheduler.
 *
 * Returns:
 *   0            *out is the scheduler
 *   -EINVAL      an unknown kind or flag; a service is missing, or given where none is used; an
 *                executor whose ops are incomplete; a knob out of range or of another kind
 *   -ENOMEM      no memory
 *   -ESHUTDOWN   the service or its pool is closed
 *   -EPERM       the service belongs to the parent of a forked child
 */
TW_API int tw_action_scheduler_create(tw_action_scheduler **out,
				      const struct tw_action_scheduler_config *cfg);

/*
 * Destroys a scheduler that has no actions. NULL is allowed.
 *
 * Blocks: while other threads are inside its runs, releases or calls.
 * Returns:
 *   0          destroyed
 *   -EBUSY     actions are not destroyed, or immediates wait: destroy and cancel them first
 *   -EDEADLK   called from the scheduler's own work, `failed` or a release
 */
TW_API int tw_action_scheduler_destroy(tw_action_scheduler *scheduler);

/* ------------------------------------------------------------------- actions */

/*
 * Creates an action that is not scheduled. release may be NULL: none is called.
 *
 * Returns:
 *   0         *out is the action
 *   -ENOMEM   no memory
 */
TW_API int tw_action_create(tw_action **out, tw_action_scheduler *scheduler, tw_action_fn *fn,
			    tw_action_release_fn *release);

/*
 * Schedules one run after delay_ns with `state`. Replaces a run that is scheduled already.
 *
 * Blocks: never, except that an idle QUEUE runs work inside this call.
 * Returns:
 *   0            scheduled
 *   -ECANCELED   the action is closed
 *   -ERANGE      delay_ns is above TW_MAX_DELAY_NS, or the instant or the next frame is beyond the
 *                clock's range
 *   -EINVAL      a delay, and no service to count it
 *   -EAGAIN      the service has no room for another timer: raise max_timers, or try again
 *   -ENOMEM      no memory
 *   any other    of an idle queue: the first failure of the flush that this call drove; only then
 *                something has changed
 */
TW_API int tw_action_schedule(tw_action *action, void *state, uint64_t delay_ns);

/*
 * Runs the action immediately with `state`, in place of a scheduled run; then, what other threads
 * have scheduled meanwhile.
 *
 * Blocks: if the work does.
 * Returns:
 *   0            the work returned 0
 *   -ECANCELED   the action is closed; its work was not called
 *   -EBUSY       it runs, or another thread runs actions of its scheduler: schedule it instead
 *   any other    the work's failure
 */
TW_API int tw_action_run(tw_action *action, void *state);

/*
 * Closes the action: it is not run again. Waits until its work and its release have returned.
 *
 * Blocks: at most timeout_ns, apart from the release.
 * Calls: its release, on this thread, if the result of the first close is TW_CANCELLED or TW_GONE.
 * Returns:
 *   TW_CANCELLED   it was scheduled, and will not run; its release has been called
 *   TW_GONE        it was not scheduled, or closed before; its release has been called
 *   TW_FINISHED    it was running; its work and its release have returned
 *   TW_RUNNING     its work or its release still runs after timeout_ns
 *   TW_SELF        called from its own work or release, or from an earlier release of its dropped
 *                  batch; it will not run again
 */
TW_API int tw_action_close(tw_action *action, uint64_t timeout_ns);

/*
 * Closes the action and gives it up: do not touch it afterwards. Does not wait. NULL is allowed.
 *
 * Threads: any, also its own work and release.
 * Calls: as tw_action_close.
 * Returns:
 *   TW_CANCELLED   it was scheduled, and will not run; its release has been called
 *   TW_RUNNING     its work or its release runs now, perhaps on this thread
 *   TW_GONE        it was not scheduled, or closed before; or action is NULL. In a forked child:
 *                  freed, and nothing is called
 */
TW_API int tw_action_destroy(tw_action *action);

/* What an action does. */
enum tw_action_state {
	TW_ACTION_STATE_IDLE = 0,  /* no run is scheduled; its work may be running */
	TW_ACTION_STATE_ARMED = 1, /* a run is scheduled */
	TW_ACTION_STATE_CLOSED = 2 /* it will not run again */
};

/*
 * Tells whether a run is scheduled, and whether the action is closed: a hint.
 *
 * Returns:
 *   >= 0   an enum tw_action_state
 */
TW_API int tw_action_state(tw_action *action);

/* -------------------------------------------------------------------- driving */

/*
 * Runs one turn or frame, with all that was scheduled without a delay before. By the caller.
 *
 * Blocks: while work runs, also another thread's.
 * Returns:
 *   0           all work returned 0
 *   -EINVAL     not by the caller
 *   -EBUSY      called from the scheduler's own work, which the outer flush goes on with
 *   any other   the first failure of the flush
 */
TW_API int tw_action_scheduler_flush(tw_action_scheduler *scheduler);

/* ----------------------------------------------------------------- immediates */

/*
 * Submits an immediate: fn(arg) runs once in the next turn, in order with the actions. For ASAP and
 * FRAME. *out (may be NULL) is written before fn can run, and only on success.
 *
 * Returns:
 *   0         fn will be called
 *   -EINVAL   another kind
 *   -ENOMEM   no memory
 *   -ERANGE   the next frame is beyond the clock's range
 *   -EAGAIN   the service has no room for a frame's timer: try again
 */
TW_API int tw_immediate_submit(tw_action_scheduler *scheduler, tw_fn *fn, void *arg,
			       tw_immediate *out);

/*
 * Cancels an immediate that has not run.
 *
 * Returns:
 *   TW_CANCELLED   it will not run
 *   TW_GONE        it has run, runs, was cancelled, or never was
 *   -EINVAL        another kind
 */
TW_API int tw_immediate_cancel(tw_action_scheduler *scheduler, tw_immediate immediate);

/* ----------------------------------------------------------------- statistics */

/* Gauges and counters of an action scheduler. */
struct tw_action_scheduler_stats {
	size_t size;
	uint64_t actions; /* not destroyed, and immediates that wait */
	uint64_t armed;   /* of these */
	uint64_t runs;
	uint64_t failures;          /* of these */
	uint64_t closed_by_failure; /* others of their batches */
	uint64_t flushes;           /* turns and frames that ran something */
	uint64_t refused;           /* schedules, timers and frames */
	uint64_t untold;            /* failures that neither a call nor `failed` reported */
	uint64_t turns;             /* requests to the host: executor, frame clock, or caller */
	uint64_t turns_cancelled;   /* of these, since nothing was left to run */
};

/*
 * Reads a scheduler's statistics.
 *
 * Returns:
 *   0         *out is filled
 *   -EINVAL   the size is smaller than one gauge
 */
TW_API int tw_action_scheduler_stats(tw_action_scheduler *scheduler,
				     struct tw_action_scheduler_stats *out);

#ifdef __cplusplus
}
#pragma GCC diagnostic pop
#endif
#endif
