/*
 * The inside of actions (contract: tickwheel/action.h).
 *
 *     end.c      leaving a line; close, release, wait
 *     flush.c    runs due actions
 *     action.c   schedulers, arming, what brings the turns of ASAP and FRAME, immediates
 *
 * The lock of the scheduler's object guards all. It is not held while user code runs, except
 * `wanted`. The thread that unlocks submits the work.
 *
 * An armed action is in one line:
 *
 *   timed      Its timer moves it on, if the action still names that timer (tw_self).
 *   came       It begins a flush of its own.
 *   due        It belongs to the flush under way: it has begun it, or comes due meanwhile.
 *   batches    Actions join the open one. A flush makes the other one the open one, and then runs
 *              the former: what arrives meanwhile waits for the next flush.
 *
 * Only the flusher runs actions of the scheduler and calls `failed`. Other threads leave an action
 * in a line or set `turn`. The flusher looks for both and stops being the flusher under one hold of
 * the lock. It has a bound (flush.c). If it leaves something, `work` is out.
 *
 * References of an action: its owner, its run, its close until the release has returned, a waiter,
 * and each timer. Users of the object: its creator, each action, each timer, and work that is out.
 */
#ifndef TW_EXECUTOR_ACTION_H
#define TW_EXECUTOR_ACTION_H

#include "executor/base/object.h"
#include "mpsc/base/entry.h"
#include "tickwheel/action.h"

/* All under the lock, except the constants. */
struct tw_action {
	tw_action_scheduler *scheduler;
	tw_action_fn *fn;
	tw_action_release_fn *release;
	tw_fn *immediate; /* or NULL */
	uint64_t immediate_id;

	void *state, *context;             /* of the arming */
	uint64_t delay_ns, due_ns;         /* of the arming; due: the nominal instant */
	uint64_t ran_delay_ns, ran_due_ns; /* of the run under way, or the last one */
	struct tw__line *line;             /* that it is in; NULL: it is not armed */
	struct tw__in_line place;
	tw_timer timer; /* in `timed` */

	bool owned, running, closed;
	bool releasing;   /* closed, and its release has not returned */
	pthread_t thread; /* that runs it, or calls its release */
	enum tw_fate fate;
	uint32_t references;
};

struct tw_action_scheduler {
	struct tw__object object; /* its service may be NULL */
	struct tw_action_scheduler_config config;
	struct tw__origin origin;
	uint64_t start_ns;

	bool flushing;
	pthread_t flusher;
	struct tw__line timed, came, due, batches[2];
	struct tw__line *open; /* of the batches: what is armed with delay 0 joins it */
	bool turn;             /* the open batch's turn has come */
	bool requested;        /* that turn is requested from the host */
	bool submit;           /* the thread that unlocks submits the work */
	tw_timer frame;        /* of the open batch; zero: none */

	/* Those that wait, by the low bits of their ids, each in its own place. */
	struct tw_action **immediates;
	uint64_t room, waiting, last_id;

	uint64_t owned;
	struct tw_action_scheduler_stats stats;
};

#define TW__ACTIONS_CHECK(call, scheduler) TW__ORIGIN_CHECK(call, scheduler, "scheduler")
#define TW__ACTION_CHECK(action) \
	TW__ORIGIN_CHECK(__func__, (action) ? (action)->scheduler : NULL, "action")

/* Drops n users and the lock, and submits the work if it was asked for. */
static inline void tw__actions_unlock(tw_action_scheduler *scheduler, uint32_t n)
{
	bool submit = scheduler->submit;
	scheduler->submit = false;
	tw__object_drop(&scheduler->object, n); /* if the work is to go out, it is ACTIVE */
	if (submit)
		tw__work_submit(&scheduler->object.work);
}

static inline void tw__actions_ask_for_work(tw_action_scheduler *scheduler)
{
	scheduler->submit |= tw__object_raise(&scheduler->object);
}

static inline bool tw__actions_mine(const tw_action_scheduler *scheduler)
{
	return scheduler->flushing && pthread_equal(scheduler->flusher, pthread_self());
}

static inline uint64_t tw__actions_now(const tw_action_scheduler *scheduler)
{
	tw_service *service = scheduler->config.service;
	return service ? tw_service_now(service) : tw_clock_now(tw_clock_monotonic());
}

/* It needs a timer, of its own or of a frame. */
static inline bool tw__action_by_timer(const tw_action_scheduler *scheduler, uint64_t delay_ns)
{
	enum tw_action_kind kind = scheduler->config.kind;
	return delay_ns || kind == TW_ACTION_KIND_ASYNC ||
	       (kind == TW_ACTION_KIND_FRAME && scheduler->config.service);
}

/* The place of an immediate with this id. There is a table. */
static inline struct tw_action **tw__immediate_at(tw_action_scheduler *scheduler, uint64_t id)
{
	return &scheduler->immediates[id & (scheduler->room - 1)];
}

/* ------------------------------------------------------------ end.c, under the lock */

/* The last reference frees the action. */
void tw__action_put(struct tw_action *action);

/* Does nothing the second time. */
void tw__action_disown(struct tw_action *action);

/* The action is in no line. */
void tw__action_join(struct tw_action *action, struct tw__line *line);

/* An armed action leaves its line. An immediate also leaves its table, and is disowned. */
void tw__action_leave(struct tw_action *action);

/* The same, and its timer or the turn that nobody else wants is cancelled. */
void tw__action_detach(struct tw_action *action);

/*
 * Closes the action, and detaches it. True: the caller calls tw__action_release. False: it was
 * closed before, or it runs: the end of its run is its end.
 */
bool tw__action_close(struct tw_action *action, enum tw_fate fate);

/* Calls the release, with the lock released. The action may be gone afterwards. */
void tw__action_release(struct tw_action *action);

/* ---------------------------------------------------------- flush.c, under the lock */

/*
 * The calling thread becomes the flusher, flushes `due`, and serves others. Returns the first
 * failure; `failed` is called for the rest.
 */
int tw__actions_flush(tw_action_scheduler *scheduler);

void tw__actions_work(struct tw__work *work);

#endif
