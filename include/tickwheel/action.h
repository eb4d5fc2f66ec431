/*
 * Actions: work, its state and its cancel handle in one object, which may schedule itself again.
 *
 * An action belongs to an action scheduler. Schedulers are of four kinds with one interface: tell
 * the time, and run this work with that state after this delay. So work that is written for a timer
 * service also runs in a frame loop. Tests drive ASYNC actions on a simulation (sim.h) or a manual
 * clock.
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
 * Runs. The actions of one scheduler run one at a time, never nested. An action that comes due
 * while another one runs is appended, and the same thread runs it afterwards. After 64 such runs
 * the executor goes on. A QUEUE without a service has no executor: there the thread runs all.
 *
 * An action has at most one run outstanding. Work that schedules its own action again with the same
 * delay keeps the phase, as an interval does, and skips instants in the past. Another delay counts
 * from now. A run has the context of its scheduling (context.h).
 *
 * Failure. Work returns 0, or a failure, which ends its action. The call that drives a flush
 * returns the first failure of it; `failed` gets every failure that no call returns. Other actions
 * go on. With TW_ACTION_FLAG_CANCEL_BATCH a failure ends the flush and closes the rest of its
 * batch, as RxJS up to 7.8.2 does.
 *
 * How an action ends. Its release is called once, when its work has returned:
 *
 *   cause                                     fate                thread of the release
 *   tw_action_close, tw_action_destroy        TW_FATE_CANCELLED   the caller, or its runner
 *   its work fails                            TW_FATE_FIRED       the one that ran it
 *   another one of its batch fails            TW_FATE_DROPPED     the one that ran the other
 *
 * Kinds, what a delay of 0 means in each, and what a batch is:
 *
 *   TW_ACTION_KIND_ASYNC     runs as soon as the service runs it. Batch: an action that has come
 *                            due, and those that come due while it runs
 *   TW_ACTION_KIND_QUEUE     runs inside tw_action_schedule if the scheduler is idle; otherwise
 *                            after the action that runs, in order, on that thread. Batch: all
 *                            that waits. The call returns when the queue is empty. It does not
 *                            return if each run adds another action
 *   TW_ACTION_KIND_ASAP      runs in the next turn of an executor, or of your loop. Batch: all that
 *                            was scheduled before the turn
 *   TW_ACTION_KIND_FRAME     the same with frames of a clock that the service drives, or of your
 *                            vsync
 *
 * With a delay, QUEUE, ASAP and FRAME do as ASYNC, and need a service.
 *
 * Threads: any thread may make any call, also from work. A mutex of the scheduler guards them. Only
 * QUEUE runs work inside tw_action_schedule.
 *
 *   work of                                           runs on
 *   ASYNC, and anything with a delay                  the service's executor, or the config's
 *   QUEUE                                             the thread that schedules it
 *   ASAP and FRAME of a service                       the service's executor, or the config's
 *   ASAP and FRAME by the caller                      the thread that flushes or runs it
 *
 * In a forked child each call returns -EPERM, and tw_action_scheduler_now returns 0. A destroy
 * frees memory. Destroy the actions first, and then the scheduler.
 *
 * Memory. An action lives until tw_action_destroy, which any thread calls once, also its own work
 * or release. The library frees it when its work and release have returned, and never looks at
 * state. Destroy a scheduler after its actions, and before its service is closed (-EBUSY until
 * then).
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
 * The work of an action. Returns 0, or a failure: any other number. Positive ones differ from a
 * call's own errors.
 */
typedef int tw_action_fn(tw_action *action, void *state);

/*
 * Called once when the action has ended: the place to free what it used, and to destroy it.
 *
 * state is that of the last scheduling, or NULL. Runs under the calling thread's context, with no
 * lock held, beside other work of the scheduler. A second tw_action_destroy here returns
 * TW_RUNNING.
 */
typedef void tw_action_release_fn(tw_action *action, void *state, enum tw_fate fate);

/* Handle of an immediate: a value. All-zero is "no immediate"; a stale handle is harmless. */
typedef struct tw_immediate {
	uint64_t id; /* from 1, in the order of submits */
} tw_immediate;

/* ---------------------------------------------------------------- schedulers */

/* Kinds of schedulers; see the table above. */
enum tw_action_kind {
	TW_ACTION_KIND_ASYNC = 0,
	TW_ACTION_KIND_QUEUE = 1,
	TW_ACTION_KIND_ASAP = 2,
	TW_ACTION_KIND_FRAME = 3
};

/* Flags of struct tw_action_scheduler_config. */
enum tw_action_flags {
	TW_ACTION_FLAG_BY_CALLER = 1, /* ASAP, FRAME: you drive, with tw_action_scheduler_flush */
	TW_ACTION_FLAG_CANCEL_BATCH =
	    2 /* a failure ends its flush and closes the rest of its batch */
};

/*
 * Called for a failure that no call returns. `closed` is how many others of its batch were closed.
 *
 * Also called with -ESHUTDOWN for an action that was scheduled and cannot run, since its executor
 * is a closed strand. For FRAME it is called once for each action of the frame. The action stays
 * open. On a closed strand ASAP actions without a delay, and immediates of ASAP, still run.
 *
 * An immediate that cannot run comes with action NULL. Calls are serialized with the scheduler's
 * work and with each other. The action may be destroyed here.
 */
typedef void tw_action_failed_fn(void *failed_arg, tw_action *action, int failure, size_t closed);

/* Knobs of a scheduler. Members that are 0 are not used, or the default. */
struct tw_action_scheduler_config {
	size_t size; /* sizeof(struct tw_action_scheduler_config) */
	enum tw_action_kind kind;
	uint32_t flags;        /* enum tw_action_flags */
	tw_service *service;   /* ASYNC needs one, ASAP and FRAME unless by the caller */
	tw_executor *executor; /* runs its actions; needs a service, outlives it; NULL: its own */
	uint32_t frames_per_second; /* FRAME: 1 .. 1000; default 60 */
	uint32_t reserved;          /* 0 */

	/*
	 * By the caller: called with true when a flush is wanted, and with false when nothing is
	 * left that wanted it. A flush takes the wish back without a call. A lock is held: set a
	 * flag or write to a descriptor, and do not call the scheduler.
	 */
	void (*wanted)(void *wanted_arg, bool wanted);
	void *wanted_arg;

	tw_action_failed_fn *failed;
	void *failed_arg;
};

/*
 * Creates a scheduler.
 *
 * Threads: any. Never blocks.
 * Returns:
 *   0            *out is the scheduler; on an error *out is not written
 *   -EINVAL      out or cfg is NULL; an unknown kind or flag; a service missing or not wanted; an
 *                executor whose ops are incomplete; a knob out of range or of another kind
 *   -E2BIG       non-zero bytes beyond the known struct
 *   -ENOMEM      no memory
 *   -ESHUTDOWN   the service or its pool is closed
 *   -EPERM       in a forked child
 */
TW_API int tw_action_scheduler_create(tw_action_scheduler **out,
				      const struct tw_action_scheduler_config *cfg);

/*
 * Destroys a scheduler that has no actions. NULL is allowed.
 *
 * It waits for other threads inside runs, releases or calls of destroyed actions, so it may be
 * polled while others destroy the last ones. It also waits for a turn of ASAP that a pool holds,
 * unless the caller is one of the pool's workers or inside a callback of the service. In all other
 * cases the service's close waits for that turn.
 *
 * Threads: any. Blocks as described.
 * Returns:
 *   0          destroyed
 *   -EBUSY     actions are not destroyed, or immediates wait; nothing changed: destroy and cancel
 *              them first
 *   -EDEADLK   called from the scheduler's own work, `failed` or a release; nothing changed
 */
TW_API int tw_action_scheduler_destroy(tw_action_scheduler *scheduler);

/*
 * Tells a scheduler's time, in nanoseconds: the service's clock, else tw_clock_monotonic().
 *
 * Threads: any.
 * Returns: the time; 0 if scheduler is NULL, or in a forked child.
 */
TW_API uint64_t tw_action_scheduler_now(tw_action_scheduler *scheduler);

/* ------------------------------------------------------------------- actions */

/*
 * Creates an action that is not scheduled. release may be NULL: none is called.
 *
 * Threads: any. Never blocks.
 * Returns:
 *   0         *out is the action; on an error *out is not written, and release is not called
 *   -EINVAL   out, scheduler or fn is NULL
 *   -ENOMEM   no memory
 *   -EPERM    in a forked child
 */
TW_API int tw_action_create(tw_action **out, tw_action_scheduler *scheduler, tw_action_fn *fn,
			    tw_action_release_fn *release);

/*
 * Schedules one run after delay_ns with `state`. Replaces a run that is scheduled already.
 *
 * Threads: any. Never blocks. An idle QUEUE runs work inside this call.
 * Returns:
 *   0             scheduled
 *   -ECANCELED    the action is closed
 *   -ERANGE       delay_ns is above TW_MAX_DELAY_NS, or the instant or the next frame is beyond the
 *                 clock's range
 *   -EINVAL       action is NULL; a delay, and no service to count it
 *   -EAGAIN       the service has no room for another timer: raise max_timers, or try again
 *   -ENOMEM       no memory
 *   -EPERM        in a forked child
 *   any other     of an idle queue: the first failure of the flush that this call drove
 * After an error, except a queue's failure, nothing has changed.
 */
TW_API int tw_action_schedule(tw_action *action, void *state, uint64_t delay_ns);

/*
 * Runs the action immediately with `state`, in place of a run that is scheduled. Then runs what
 * other threads have brought meanwhile.
 *
 * Threads: any. Blocks if the work does.
 * Returns:
 *   0            the work returned 0
 *   -ECANCELED   the action is closed; its work was not called
 *   -EBUSY       it runs, or another thread runs actions of its scheduler: schedule it instead
 *   -EINVAL      action is NULL
 *   -EPERM       in a forked child
 *   any other    the work's failure
 */
TW_API int tw_action_run(tw_action *action, void *state);

/*
 * Closes the action: it is not run again. Waits until its work and its release have returned.
 *
 * The first close calls the release, if the work does not run. The work may destroy the action
 * meanwhile. Two works that wait for each other wait without limit.
 *
 * Threads: any. Blocks at most timeout_ns (0: never), apart from the release.
 * Calls: its release, on this thread, if the result of the first close is TW_CANCELLED or TW_GONE.
 * Returns:
 *   TW_CANCELLED   it was scheduled, and will not run; its release has been called
 *   TW_GONE        it was not scheduled, or closed before; its release has been called
 *   TW_FINISHED    it was running; its work and its release have returned
 *   TW_RUNNING     its work or its release still runs after timeout_ns
 *   TW_SELF        called from its own work or release, or from a release of the same dropped
 *                  batch that comes before its own; it will not run again
 *   -EINVAL        action is NULL
 *   -EPERM         in a forked child
 */
TW_API int tw_action_close(tw_action *action, uint64_t timeout_ns);

/*
 * Closes the action and gives it up: do not touch it afterwards. Does not wait. NULL is allowed.
 *
 * Threads: any, also its own work and release. Never blocks, apart from the release.
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
 * Tells whether a run is scheduled, and whether the action is closed. Other threads may change that
 * in the same moment.
 *
 * Threads: any. Never blocks.
 * Returns:
 *   >= 0      an enum tw_action_state
 *   -EINVAL   action is NULL
 *   -EPERM    in a forked child
 */
TW_API int tw_action_state(tw_action *action);

/* -------------------------------------------------------------------- driving */

/*
 * Runs one turn or frame, with all that was scheduled without a delay before. By the caller.
 *
 * Threads: any. Blocks while work runs, also another thread's.
 * Returns:
 *   0           all work returned 0
 *   -EINVAL     scheduler is NULL, or not by the caller
 *   -EBUSY      called from the scheduler's own work, which the outer flush goes on with
 *   -EPERM      in a forked child
 *   any other   the first failure of the flush
 */
TW_API int tw_action_scheduler_flush(tw_action_scheduler *scheduler);

/* ----------------------------------------------------------------- immediates */

/*
 * Submits an immediate: fn(arg) runs once in the next turn, in order with the actions. For ASAP and
 * FRAME.
 *
 * *out (may be NULL) is written before fn can run, and only on success. Memory depends on how many
 * immediates wait at a time.
 *
 * Threads: any. Never blocks.
 * Returns:
 *   0         fn will be called
 *   -EINVAL   scheduler or fn is NULL, or another kind
 *   -ENOMEM   no memory
 *   -ERANGE   the next frame is beyond the clock's range
 *   -EAGAIN   the service has no room for a frame's timer: try again
 *   -EPERM    in a forked child
 */
TW_API int tw_immediate_submit(tw_action_scheduler *scheduler, tw_fn *fn, void *arg,
			       tw_immediate *out);

/*
 * Cancels an immediate that has not run.
 *
 * Threads: any. Never blocks.
 * Returns:
 *   TW_CANCELLED   it will not run
 *   TW_GONE        it has run, runs, was cancelled, or never was
 *   -EINVAL        scheduler is NULL, or another kind
 *   -EPERM         in a forked child
 */
TW_API int tw_immediate_cancel(tw_action_scheduler *scheduler, tw_immediate immediate);

/* ----------------------------------------------------------------- statistics */

/* Gauges and counters of an action scheduler. */
struct tw_action_scheduler_stats {
	size_t size;      /* in: sizeof(struct tw_action_scheduler_stats) */
	uint64_t actions; /* not destroyed, and immediates that wait */
	uint64_t armed;   /* of these */
	uint64_t runs;
	uint64_t failures;          /* of these */
	uint64_t closed_by_failure; /* others of their batches (TW_ACTION_FLAG_CANCEL_BATCH) */
	uint64_t flushes;           /* turns and frames that ran something */
	uint64_t refused;           /* schedules, timers and frames that were refused */
	uint64_t untold;            /* failures that neither a call nor `failed` reported */
	uint64_t turns;             /* requests to the host: executor, frame clock, or caller */
	uint64_t turns_cancelled;   /* of these, since nothing was left to run */
};

/*
 * Reads a scheduler's statistics. An older or newer `size` is fine, as with tw_service_stats.
 *
 * Threads: any. Never blocks.
 * Returns:
 *   0         *out is filled
 *   -EINVAL   NULL, or the size is smaller than one gauge
 *   -EPERM    in a forked child
 */
TW_API int tw_action_scheduler_stats(tw_action_scheduler *scheduler,
				     struct tw_action_scheduler_stats *out);

#ifdef __cplusplus
}
#pragma GCC diagnostic pop
#endif
#endif
