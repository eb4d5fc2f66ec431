/*
 * Actions: work, its state and its cancel handle in one object, which re-arms itself or not each time it runs.
 *
 * An action belongs to a scheduler, of one of five kinds with one face: what time is it, and run this with that state after so long.
 * So what is written for a timer service runs in a frame loop, or under a test's virtual clock.
 *
 *     static int blink(tw_action *action, void *lamp)
 *     {
 *             toggle(lamp);
 *             tw_action_arm(action, lamp, 500 * TW_MILLISECOND, NULL);    (or not, and it rests)
 *             return 0;
 *     }
 *     tw_action *action = tw_action_schedule(scheduler, blink, lamp, 500 * TW_MILLISECOND, NULL);
 *
 * Runs. The actions of one scheduler run one at a time, never nested, whatever threads bring them: what comes due while one runs
 * is appended, and run by the same thread when it has returned. A run is due once; work that arms its action again during its own run
 * with the same delay keeps the phase, as an interval does: lateness does not add up, and instants that are past already are
 * left out. Another delay starts anew from now. Armed before its run, an action gets the new state and delay in place of the old: there is
 * never more than one run outstanding. Runs are under the context of their arming (context.h).
 *
 * Failure. Work returns 0; anything else is a failure, and closes its action. It ends the flush that the run was part of: what is in
 * the same batch and has not run is closed too; later batches, and the scheduler, go on. The failure is returned by the call that drove the
 * flush; where none did (timers, turns and frames of a service), it is told to `failed`. Both are counted.
 *
 * Kinds, what arming with delay 0 means in each, and what a batch is:
 *   TW_ACTION_ASYNC    as soon as the service runs it. Batch: what came due during the flush.
 *   TW_ACTION_QUEUE    a trampoline. Idle: runs now, inside of tw_action_arm, which returns its failure; while the scheduler runs something:
 *                      afterwards, in order, on the thread that does. The stack does not grow. Batch: all that waits.
 *   TW_ACTION_ASAP     in the next turn of an executor, or of the caller's loop. Batch: all that was armed before the turn; what is armed
 *                      during it waits for the next.
 *   TW_ACTION_FRAME    the same with frames, of a clock that the service drives, or with the caller's vsync.
 *   TW_ACTION_VIRTUAL  at the virtual clock's present instant. Batch: what is due at the same instant.
 * With a delay, queue, asap and frame do as async, and need a service for it.
 *
 * Threads. All calls from any thread, also from work, for all kinds: a mutex of the scheduler guards them, so this is no hot path. Work of ASYNC runs
 * on the service's executor (or `executor`), so do ASAP's turns, a service's frames, and whatever has a delay. A queue's work runs on the
 * thread that armed it, the rest on the thread that calls tw_action_flush, _advance or _run. A virtual clock is deterministic only
 * if one thread uses it. In a forked child: -EPERM (bool: false; tw_action_now: 0), and nothing can be freed but with the child.
 *
 * Memory. An action lives until tw_action_destroy, which may be called at any time, also from its own work, and after which the caller does
 * not touch it; if it runs then, its memory goes when its work has returned. state is never looked at. A scheduler goes after its
 * actions. As long as it exists its service cannot be closed (-EBUSY).
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
extern "C" {
#endif

typedef struct tw_action tw_action;
typedef struct tw_action_scheduler tw_action_scheduler;

/* 0, or a failure: any other number, which the library passes on. Positive ones cannot be taken for a call's own errors. */
typedef int tw_action_fn(tw_action *action, void *state);

/* ---------------------------------------------------------------- schedulers */

enum tw_action_kind {
	TW_ACTION_ASYNC = 0,
	TW_ACTION_QUEUE = 1,
	TW_ACTION_ASAP = 2,
	TW_ACTION_FRAME = 3,
	TW_ACTION_VIRTUAL = 4
};

enum tw_action_flags {
	TW_ACTION_BY_CALLER = 1 /* ASAP, FRAME: the caller's loop drives, with tw_action_flush */
};

/*
 * Told of a failure that no call returns, on the thread that ran the work, which counts as running still: what is armed here is
 * appended. `closed` others of its batch were closed with it. -EAGAIN as the failure: the service's executor refused the action's
 * timer (TW_REFUSED_DROP); it did not run, and is not closed. The action may be destroyed here.
 */
typedef void tw_action_failed_fn(void *failed_arg, tw_action *action, int failure, size_t closed);

/* Fields left 0 mean: not wanted, or the default. */
struct tw_action_config {
	size_t size; /* sizeof(struct tw_action_config) */
	enum tw_action_kind kind;
	uint32_t flags;        /* enum tw_action_flags */
	tw_service *service;   /* ASYNC, and ASAP and FRAME without TW_ACTION_BY_CALLER, need one; VIRTUAL takes none */
	tw_executor *executor; /* where its actions run; NULL: the service's; needs a service, and outlives it */
	uint32_t frames_per_second; /* FRAME: 1 .. 1000; default 60 */
	uint32_t reserved;          /* 0 */

	/*
	 * TW_ACTION_BY_CALLER: told when a flush has become wanted, and when it no longer is, since all that waited for it was closed. Called
	 * with a lock held: it may set a flag or write to a descriptor, and calls nothing of the scheduler.
	 */
	void (*wanted)(void *wanted_arg, bool wanted);
	void *wanted_arg;

	/* VIRTUAL: tw_action_flush goes no further than max_frames (0: no limit) times frame_ns (0: 1 ms) on the virtual clock. */
	uint64_t max_frames;
	uint64_t frame_ns;
	uint64_t
	    seed; /* VIRTUAL: permutes what is due at the same instant, the same seed alike; 0: in the order of arming */

	tw_action_failed_fn *failed;
	void *failed_arg;
};

/*
 * 0. -EINVAL: out or cfg NULL, unknown kind or flag, a service missing or not wanted, an executor that is not sound, a knob out of range or of
 * another kind. -E2BIG. -ENOMEM. -ESHUTDOWN: the service or its pool is closed. -EPERM. *out is written on success only.
 */
TW_API int tw_action_scheduler_create(tw_action_scheduler **out, const struct tw_action_config *cfg);

/*
 * Waits for runs of destroyed actions that other threads are in the middle of. NULL is allowed. 0. -EBUSY: some actions are not destroyed, or
 * immediates wait. -EDEADLK: from the scheduler's own work. Of ASAP: where a turn was asked of an executor other than a pool and has not come,
 * the service's close waits for it; so too if the caller is one of the pool's workers, or inside a callback of the service.
 */
TW_API int tw_action_scheduler_destroy(tw_action_scheduler *scheduler);

/* Its time, ns: the service's clock, else the virtual one (which starts at 0), else tw_clock_monotonic(). 0 if NULL. */
TW_API uint64_t tw_action_now(tw_action_scheduler *scheduler);

/* ------------------------------------------------------------------- actions */

/*
 * Makes an action and arms it: tw_action_create and tw_action_arm. NULL: an error, and nothing was made. *error (may be NULL): as theirs. A
 * failure of a queue's work, which has run already, is in *error, but the action is returned (if its work has not destroyed it).
 */
TW_API tw_action *tw_action_schedule(tw_action_scheduler *scheduler, tw_action_fn *fn, void *state, uint64_t delay_ns,
				     int *error);

/* Makes one that rests. 0. -EINVAL: out, scheduler or fn NULL. -ENOMEM. -EPERM. *out is written on success only. */
TW_API int tw_action_create(tw_action **out, tw_action_scheduler *scheduler, tw_action_fn *fn);

/*
 * Has it run once, after delay_ns, with this state; if it was armed already, instead of that run. Returns the same action (NULL if it is NULL).
 * *error (may be NULL; tw_action_stats.refused counts all but -EINVAL and -EPERM): 0. After any other nothing has changed. -ECANCELED: it is closed.
 * -ERANGE: delay_ns beyond TW_MAX_DELAY_NS, or the instant beyond the clock's range. -EINVAL: NULL; a delay, and no service to count it.
 * -EAGAIN, -ENOMEM: no room. -EPERM. A queue that was idle: the failure of the flush that this call drove.
 */
TW_API tw_action *tw_action_arm(tw_action *action, void *state, uint64_t delay_ns, int *error);

/*
 * Runs it here and now with this state, in place of the run that it is armed for, if any. What the work returned. -ECANCELED: it is closed, and
 * its work was not called. -EBUSY: it runs already, or another thread runs actions of its scheduler. -EINVAL: NULL. -EPERM.
 */
TW_API int tw_action_run(tw_action *action, void *state);

/*
 * Closes it for good: it is not run again, and arming does nothing. TW_CANCELLED: it was armed, and will not run. TW_RUNNING: its work is
 * running right now (perhaps the caller). TW_GONE: neither. -EINVAL: NULL. -EPERM.
 */
TW_API int tw_action_close(tw_action *action);

/* Closes it, and waits until its work has returned: TW_FINISHED; TW_SELF: called from it; TW_RUNNING: not by timeout_ns. Else as close.
 * Two works that wait for each other wait for ever. */
TW_API int tw_action_close_wait(tw_action *action, uint64_t timeout_ns);

/* Closes it, and gives it back. The same answers; NULL: TW_GONE. */
TW_API int tw_action_destroy(tw_action *action);

/* Hints, true when looked at. */
TW_API bool tw_action_is_armed(tw_action *action);
TW_API bool tw_action_is_closed(tw_action *action);

/* -------------------------------------------------------------------- driving */

/*
 * TW_ACTION_BY_CALLER: one turn, or frame: runs all that was armed with delay 0 before. Waits while another thread runs what had a delay.
 * VIRTUAL: runs all in order of (time, arming), up to the config's limit; the clock stands at the last one's time afterwards, the rest stays armed.
 * Endless if work re-arms for ever and there is no limit. 0, or the failure that ended it. -EINVAL: NULL, another kind, or not by the
 * caller. -EBUSY: from the scheduler's own work; VIRTUAL: also while another thread drives. -EPERM.
 */
TW_API int tw_action_flush(tw_action_scheduler *scheduler);

/*
 * VIRTUAL: the same up to an instant, at which the clock stands afterwards; if a failure ended it, at the failed one's. Instants in the past:
 * only what is due already. -ERANGE also: beyond TW_MAX_DELAY_NS.
 */
TW_API int tw_action_advance(tw_action_scheduler *scheduler, uint64_t by_ns);
TW_API int tw_action_advance_to(tw_action_scheduler *scheduler, uint64_t at_ns);

/* ----------------------------------------------------------------- immediates */

/*
 * Of ASAP and FRAME: fn(arg) once in the next turn, among the actions and in their order. A number from 1 on, which no other gets. -EINVAL: NULL, or
 * another kind. -ENOMEM, -EAGAIN, -EPERM.
 */
TW_API int64_t tw_set_immediate(tw_action_scheduler *scheduler, tw_fn *fn, void *arg);

/* TW_CANCELLED: it will not run. TW_GONE: it has run, or runs, or was cleared, or never was. -EINVAL: NULL. -EPERM. */
TW_API int tw_clear_immediate(tw_action_scheduler *scheduler, int64_t id);

/* ----------------------------------------------------------------- statistics */

struct tw_action_stats {
	size_t size;      /* in: sizeof(struct tw_action_stats) */
	uint64_t actions; /* made and not destroyed; immediates that wait */
	uint64_t armed;   /* of these */
	uint64_t runs;
	uint64_t failures;          /* of these */
	uint64_t closed_by_failure; /* others of their batches */
	uint64_t flushes;           /* turns, frames, and so on, that ran something */
	uint64_t refused;           /* arms that were refused, or whose timer an executor refused (TW_REFUSED_DROP) */
	uint64_t untold;            /* failures that no call returned, with no `failed` to tell */
	uint64_t turns;             /* asked of the host: executor, frame clock, or caller */
	uint64_t turns_cancelled;   /* of these: since nothing was left for them */
};

/* -EINVAL: NULL, or size smaller than one gauge. -EPERM. */
TW_API int tw_action_stats_get(tw_action_scheduler *scheduler, struct tw_action_stats *out);

#ifdef __cplusplus
}
#endif
#endif
