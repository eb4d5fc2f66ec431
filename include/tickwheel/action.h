/*
 * Actions: work, its state and its cancel handle in one object, which may arm itself again each time it runs.
 *
 * An action belongs to a scheduler. Schedulers are of five kinds with one interface: what time is it, and run this with that
 * state after this delay. So work that is written for a timer service also runs in a frame loop, or on a test's virtual clock.
 *
 *     static int blink(tw_action *action, void *lamp)
 *     {
 *             toggle(lamp);
 *             tw_action_schedule(action, lamp, 500 * TW_MILLISECOND);    (or not, and it rests)
 *             return 0;
 *     }
 *     tw_action *action;
 *     tw_action_scheduler_schedule(scheduler, blink, lamp, 500 * TW_MILLISECOND, &action);
 *
 * Runs. The actions of one scheduler run one at a time, never nested, on any thread. An action that comes due while another one
 * runs is appended, and the same thread runs it afterwards. Each arming gives one run; an action has at most one run outstanding.
 * Work that arms its own action again with the same delay keeps the phase, as an interval does: lateness does not add up, and
 * instants in the past are skipped. Another delay counts from now. Runs are under the context of their arming (context.h).
 *
 * Failure. Work returns 0, or a failure, which closes its action. Other actions are not affected, and the flush goes on. The call
 * that drives a flush returns the first failure of it. `failed` is called for every failure that no call returns.
 * With TW_ACTION_FLAG_CANCEL_BATCH a failure ends the flush and closes the rest of its batch. Later batches survive.
 *   TW_ACTION_FLAG_CANCEL_BATCH   is the rule of RxJS 6 and 7, up to and including 7.8.2.
 *   The default              is the rule that is proposed for RxJS (ReactiveX/rxjs, pull request 7599, open).
 *
 * End. An action ends once: when it is closed or destroyed, when its work fails, or when its batch is closed. If it runs then, it
 * ends when its work has returned. Its release is called exactly once, after that:
 *
 *   cause                                  fate                 thread of the release
 *   tw_action_close, _close_wait, _destroy TW_FATE_CANCELLED    the caller; if it runs: the thread that runs it
 *   its work fails                         TW_FATE_FIRED        the thread that ran it
 *   another one of its batch fails         TW_FATE_DROPPED      the thread that ran the other one
 *
 * Kinds, what arming with delay 0 means in each, and what a batch is:
 *   TW_ACTION_KIND_ASYNC    as soon as the service runs it. Batch: what came due during the flush.
 *   TW_ACTION_KIND_QUEUE    a trampoline. Idle: runs now, inside tw_action_schedule, which returns its failure. While the scheduler runs
 *                      something: afterwards, in order, on that thread. The stack does not grow. Batch: all that waits.
 *   TW_ACTION_KIND_ASAP     in the next turn of an executor or of the caller's loop. Batch: all that was armed before the turn. An
 *                      action that is armed during the turn waits for the next one.
 *   TW_ACTION_KIND_FRAME    the same with frames, of a clock that the service drives, or with the caller's vsync.
 *   TW_ACTION_KIND_VIRTUAL  at the virtual clock's present instant. Batch: what is due at the same instant.
 * With a delay, queue, asap and frame do as async, and need a service for it.
 *
 * Threads. Any thread may make any call, also from work. A mutex of the scheduler guards them, so this is no hot path.
 *   ASYNC's work, ASAP's turns, a service's frames and whatever has a delay run on the service's executor (or `executor`).
 *   QUEUE's work runs on the thread that arms it. The rest runs on the thread that calls tw_action_scheduler_flush, _advance or _run.
 * Only QUEUE runs work inside tw_action_schedule, also if the executor runs its tickets inside submit.
 * A virtual clock is deterministic only if one thread uses it. In a forked child: -EPERM (bool: false; tw_action_scheduler_now: 0), and
 * nothing can be freed.
 *
 * Memory. An action lives until tw_action_destroy, which any thread may call once, also its own work or release. Afterwards the
 * caller does not touch it. The library frees it when its work and release have returned. It never looks at state.
 * A scheduler is destroyed after its actions. As long as it exists its service cannot be closed (-EBUSY).
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

/* Returns 0, or a failure: any other number, which the library passes on. Positive ones differ from a call's own errors. */
typedef int tw_action_fn(tw_action *action, void *state);

/*
 * Called exactly once when the action has ended (table above): the place to free what it used, and to destroy it. state: that of
 * the last arming, or NULL. tw_action_destroy is allowed here even if the action is destroyed already: then it answers TW_RUNNING
 * and changes nothing. Runs under the calling thread's context, with no lock held, and beside other work of the scheduler.
 */
typedef void tw_action_release_fn(tw_action *action, void *state, enum tw_fate fate);

/* Handle of an immediate: a value. All-zero is "no immediate"; a stale handle is harmless. */
typedef struct tw_immediate {
	uint64_t id; /* from 1, in the order of submits */
} tw_immediate;

/* ---------------------------------------------------------------- schedulers */

enum tw_action_kind {
	TW_ACTION_KIND_ASYNC = 0,
	TW_ACTION_KIND_QUEUE = 1,
	TW_ACTION_KIND_ASAP = 2,
	TW_ACTION_KIND_FRAME = 3,
	TW_ACTION_KIND_VIRTUAL = 4
};

enum tw_action_flags {
	TW_ACTION_FLAG_BY_CALLER = 1,   /* ASAP, FRAME: the caller's loop drives, with tw_action_scheduler_flush */
	TW_ACTION_FLAG_CANCEL_BATCH = 2 /* a failure ends its flush and closes the rest of its batch */
};

/*
 * Called for a failure that no call returns. `closed`: how many others of its batch were closed with it. Also called for an
 * action that was armed and cannot run; it is armed no longer, and not closed:
 *   -EAGAIN      the executor refused its timer, and the service drops refused runs (TW_REFUSED_DROP)
 *   -ESHUTDOWN   the executor is a closed strand; of FRAME: for each action of the frame. Arming it again fails again
 * An immediate that cannot run is reported with action NULL. All calls of `failed` are serialized with the scheduler's work and
 * with each other: the flushing thread makes them, and appends what is armed here. The action may be destroyed here.
 */
typedef void tw_action_failed_fn(void *failed_arg, tw_action *action, int failure, size_t closed);

/* Fields left 0 mean: not wanted, or the default. */
struct tw_action_scheduler_config {
	size_t size; /* sizeof(struct tw_action_scheduler_config) */
	enum tw_action_kind kind;
	uint32_t flags; /* enum tw_action_flags */
	tw_service
	    *service; /* ASYNC, and ASAP and FRAME without TW_ACTION_FLAG_BY_CALLER, need one; VIRTUAL takes none */
	tw_executor *executor;      /* where its actions run; NULL: the service's; needs a service, and outlives it */
	uint32_t frames_per_second; /* FRAME: 1 .. 1000; default 60 */
	uint32_t reserved;          /* 0 */

	/*
	 * TW_ACTION_FLAG_BY_CALLER: called with true when a flush is wanted, and with false when it is no longer, since all that waited
	 * for it was closed. A lock is held: the function may set a flag or write to a descriptor. It must not call the scheduler.
	 */
	void (*wanted)(void *wanted_arg, bool wanted);
	void *wanted_arg;

	/* VIRTUAL: tw_action_scheduler_flush stops at max_frames (0: no limit) times frame_ns (0: 1 ms) on the virtual clock. */
	uint64_t max_frames;
	uint64_t frame_ns;
	uint64_t seed; /* VIRTUAL: permutes what is due at the same instant; 0 (default): in the order of arming */

	tw_action_failed_fn *failed;
	void *failed_arg;
};

/*
 * Creates a scheduler. Writes *out on success only.
 *
 * Threads: any. Never blocks.
 * Returns:
 *   0            created
 *   -EINVAL      out or cfg NULL; an unknown kind or flag; a service missing or not wanted; an executor without sound ops;
 *                a knob out of range or of another kind
 *   -E2BIG       non-zero bytes beyond the known struct
 *   -ENOMEM      no memory
 *   -ESHUTDOWN   the service or its pool is closed
 *   -EPERM       forked child
 */
TW_API int tw_action_scheduler_create(tw_action_scheduler **out, const struct tw_action_scheduler_config *cfg);

/*
 * Destroys a scheduler that owns no actions. NULL is allowed.
 *
 * Waits for other threads that are inside runs, releases or calls of actions that were destroyed. So it may be polled until it
 * stops to answer -EBUSY, while other threads destroy the last actions.
 * It does not wait for a turn of ASAP that an executor still has, if the executor is no pool, or if the caller is one of the
 * pool's workers or inside a callback of the service. The service's close waits for that turn.
 *
 * Threads: any. Blocks as described.
 * Returns:
 *   0          destroyed
 *   -EBUSY     some actions are not destroyed, or immediates wait; nothing changed
 *   -EDEADLK   called from the scheduler's own work, `failed` or a release; nothing changed
 *   -EPERM     forked child
 */
TW_API int tw_action_scheduler_destroy(tw_action_scheduler *scheduler);

/* Its time, ns: the service's clock, else the virtual one (which starts at 0), else tw_clock_monotonic(). 0 if NULL. */
TW_API uint64_t tw_action_scheduler_now(tw_action_scheduler *scheduler);

/* ------------------------------------------------------------------- actions */

/*
 * Creates an action and schedules it: tw_action_create and tw_action_schedule.
 *
 * *out (may be NULL) is the action, or NULL if nothing was made. It is written before the work can run.
 *
 * Threads: any. Never blocks. An idle QUEUE runs work inside this call; no other kind does.
 * Returns: as tw_action_create and tw_action_schedule. If the answer is the failure of a queue's work, the action exists
 */
TW_API int tw_action_scheduler_schedule(tw_action_scheduler *scheduler, tw_action_fn *fn, void *state,
					uint64_t delay_ns, tw_action **out);

/*
 * Creates an action that is not armed. Writes *out on success only.
 *
 * Threads: any. Never blocks.
 * Returns: 0, -EINVAL (out, scheduler or fn NULL), -ENOMEM, -EPERM (forked child)
 */
TW_API int tw_action_create(tw_action **out, tw_action_scheduler *scheduler, tw_action_fn *fn);

/* An action in full. Fields left 0 mean: not wanted. */
struct tw_action_task {
	size_t size; /* sizeof(struct tw_action_task) */
	tw_action_fn *fn;
	tw_action_release_fn *release; /* called once when the action has ended */
};

/*
 * Creates an action from its full form, not armed. Writes *out on success only. On an error the release is not called.
 *
 * Threads: any. Never blocks.
 * Returns:
 *   0         created
 *   -EINVAL   out, scheduler, task or task->fn NULL; task->size too small
 *   -E2BIG    non-zero bytes beyond the known struct
 *   -ENOMEM   no memory
 *   -EPERM    forked child
 */
TW_API int tw_action_create_task(tw_action **out, tw_action_scheduler *scheduler, const struct tw_action_task *task);

/*
 * Schedules one run after delay_ns with `state`. Replaces a run that is already armed.
 *
 * After any error except a queue's failure nothing has changed. The scheduler's statistics count the errors in `refused`, except
 * -EINVAL and -EPERM.
 *
 * Threads: any. Never blocks. An idle QUEUE runs work inside this call; no other kind does.
 * Returns:
 *   0             armed
 *   -ECANCELED    the action is closed
 *   -ERANGE       delay_ns is above TW_MAX_DELAY_NS, or the instant is beyond the clock's range
 *   -EINVAL       action is NULL; a delay, and no service to count it
 *   -EAGAIN       the service has no room for another timer
 *   -ENOMEM       no memory
 *   -EPERM        forked child
 *   any other     of a queue that was idle: the first failure of the flush that this call drove
 */
TW_API int tw_action_schedule(tw_action *action, void *state, uint64_t delay_ns);

/*
 * Runs the action here and now with `state`, in place of the run that it is armed for, if any.
 *
 * Threads: any. Blocks only if the work does.
 * Returns:
 *   0            the work returned 0
 *   -ECANCELED   the action is closed; its work was not called
 *   -EBUSY       it runs already, or another thread runs actions of its scheduler
 *   -EINVAL      NULL
 *   -EPERM       forked child
 *   any other    the work's failure
 */
TW_API int tw_action_run(tw_action *action, void *state);

/*
 * Closes the action for good: it is not run again, and arming does nothing. The first close calls its release, if it does not run.
 *
 * Threads: any. Never blocks, apart from the release.
 * Returns:
 *   TW_CANCELLED   it was armed, and will not run; its release has been called
 *   TW_RUNNING     its work or its release is running now (perhaps on this thread)
 *   TW_GONE        it rested or was closed; its release has been called
 *   -EINVAL        NULL
 *   -EPERM         forked child
 */
TW_API int tw_action_close(tw_action *action);

/*
 * Closes the action, and waits until its work and its release have returned. The work may destroy the action meanwhile.
 * Two works that wait for each other wait without limit.
 *
 * Threads: any. Blocks while it runs elsewhere, at most timeout_ns.
 * Returns: as tw_action_close; in place of TW_RUNNING:
 *   TW_FINISHED    its work and its release have returned
 *   TW_SELF        called from its own work or release
 *   TW_RUNNING     they still run after timeout_ns
 */
TW_API int tw_action_close_wait(tw_action *action, uint64_t timeout_ns);

/* Closes the action and gives it back. Returns as tw_action_close; NULL: TW_GONE. */
TW_API int tw_action_destroy(tw_action *action);

/* Hints, true when looked at. */
TW_API bool tw_action_is_armed(tw_action *action);
TW_API bool tw_action_is_closed(tw_action *action);

/* -------------------------------------------------------------------- driving */

/*
 * TW_ACTION_FLAG_BY_CALLER: runs one turn or frame: all that was armed with delay 0 before. Waits while another thread runs actions
 * that had a delay.
 * VIRTUAL: runs all in order of (time, arming), up to the config's limit. The clock then is at the last one's time; the rest
 * stays armed. Never returns if work re-arms without end and there is no limit.
 *
 * Threads: any. Blocks while work runs.
 * Returns:
 *   0           all work returned 0
 *   -EINVAL     NULL, another kind, or not by the caller
 *   -EBUSY      called from the scheduler's own work; VIRTUAL: also while another thread drives
 *   -EPERM      forked child
 *   any other   the first failure of the flush
 */
TW_API int tw_action_scheduler_flush(tw_action_scheduler *scheduler);

/*
 * VIRTUAL: runs all that is due up to an instant, and sets the clock to it. An instant in the past: only what is due already.
 * With TW_ACTION_FLAG_CANCEL_BATCH a failure stops the clock at the failed action's instant.
 * Returns: as tw_action_scheduler_flush; -ERANGE: the instant is beyond TW_MAX_DELAY_NS
 */
TW_API int tw_action_scheduler_advance(tw_action_scheduler *scheduler, uint64_t by_ns);
TW_API int tw_action_scheduler_advance_to(tw_action_scheduler *scheduler, uint64_t at_ns);

/* ----------------------------------------------------------------- immediates */

/*
 * ASAP and FRAME: runs fn(arg) once in the next turn, among the actions and in their order. Memory depends on how many immediates
 * wait at a time, not on how many were submitted.
 *
 * Threads: any. Never blocks.
 * Returns:
 *   0          fn will be called; *out (may be NULL) was written before
 *   -EINVAL    NULL, or another kind
 *   -ENOMEM    no memory
 *   -EAGAIN    the service has no room for a frame's timer
 *   -EPERM     forked child
 */
TW_API int tw_immediate_submit(tw_action_scheduler *scheduler, tw_fn *fn, void *arg, tw_immediate *out);

/*
 * Cancels an immediate that has not run.
 *
 * Threads: any. Never blocks.
 * Returns:
 *   TW_CANCELLED   it will not run
 *   TW_GONE        it has run, runs, was cancelled, or never was
 *   -EINVAL        NULL, or another kind
 *   -EPERM         forked child
 */
TW_API int tw_immediate_cancel(tw_action_scheduler *scheduler, tw_immediate immediate);

/* ----------------------------------------------------------------- statistics */

struct tw_action_scheduler_stats {
	size_t size;      /* in: sizeof(struct tw_action_scheduler_stats) */
	uint64_t actions; /* made and not destroyed; immediates that wait */
	uint64_t armed;   /* of these */
	uint64_t runs;
	uint64_t failures;          /* of these */
	uint64_t closed_by_failure; /* others of their batches (TW_ACTION_FLAG_CANCEL_BATCH) */
	uint64_t flushes;           /* turns, frames, and so on, that ran something */
	uint64_t refused;           /* arms, timers and frames that were refused */
	uint64_t untold;            /* failures and refusals that no call returned while there was no `failed` */
	uint64_t turns;             /* asked of the host: executor, frame clock, or caller */
	uint64_t turns_cancelled;   /* of these: since nothing was left for them */
};

/* Reads the counters. Threads: any. Returns: 0, -EINVAL (NULL, or size smaller than one gauge), -EPERM (forked child) */
TW_API int tw_action_scheduler_stats(tw_action_scheduler *scheduler, struct tw_action_scheduler_stats *out);

#ifdef __cplusplus
}
#endif
#endif
