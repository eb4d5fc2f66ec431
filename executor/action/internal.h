/*
 * The inside of actions (contract: tickwheel/action.h).
 *
 *     action.c      schedulers: creation, end, statistics; creation of actions
 *     close.c       ends of actions: close, release, wait
 *     arm.c         arming, and the timers of actions
 *     flush.c       the flusher: runs what is due
 *     host.c        what triggers the batches of ASAP and FRAME; immediates
 *
 * One mutex of the scheduler guards all of it. It is not held while user code runs, or while work
 * is submitted: the thread that unlocks the mutex submits the work. Timers are scheduled, moved and
 * cancelled under the mutex; a timer that is cancelled there has no call of its release.
 *
 * Where an armed action is
 *
 *   TIMED    It has one timer of the service. The timer's callback counts only if it is the
 *            timer that the action names (tw_self). So a timer that was claimed just before it
 *            was moved or cancelled does nothing.
 *   DUE      It is in `due`, which the flusher empties. If it is refused it does not run: the
 *            flusher calls `failed` for it.
 *   BATCHED  It is in `batches`, in order of batch ids. A flush takes those of one id.
 *
 * The flusher is the only thread that runs actions of the scheduler and calls `failed`. If another
 * thread is the flusher, a thread leaves its action in `due` or sets `turn`. The flusher looks for
 * both and stops being the flusher under one hold of the mutex. It has a bound (flush.c). If it
 * leaves something, `work` is out, and the executor's thread goes on.
 *
 * Lifetimes
 * - An action is freed with its last reference. References are held by its owner, its run, its end
 *   until the release has returned, a waiter, and each timer until it was cancelled or its release
 *   was called.
 * - A scheduler is freed when it owns no action and has no objects, no flusher and no frame timers.
 *   Nothing is touched after an unlock, except the work, which holds the scheduler.
 */
#ifndef TW_EXECUTOR_ACTION_H
#define TW_EXECUTOR_ACTION_H

#include "executor/base/bell.h"
#include "executor/base/object.h"
#include "tickwheel/action.h"

enum tw__action_location {
	TW__ACTION_NOWHERE,
	TW__ACTION_TIMED,
	TW__ACTION_DUE,
	TW__ACTION_BATCHED
};

/* All under the scheduler's mutex, except the constants. */
struct tw__action_times {
	uint64_t delay_ns, due_ns; /* due: the nominal instant */
};

struct tw_action {
	tw_action_scheduler *scheduler;
	tw_action_fn *fn; /* NULL: an immediate */
	tw_action_release_fn *release;
	tw_fn *immediate;
	int64_t immediate_id;
	struct tw_action *chain; /* immediates: the next one in its bucket */

	void *state;
	struct tw__action_times armed;
	struct tw__action_times last; /* of the run under way, or the last one */
	void *context;
	enum tw__action_location location;
	struct tw_action *next, *previous; /* in a list */
	uint64_t batch;
	tw_timer timer;

	bool refused; /* DUE: it does not run, since its executor is a closed strand */
	bool closed, running, owned;
	bool releasing; /* from its end until its release has returned */
	pthread_t releaser;
	enum tw_fate fate; /* if closed */
	uint32_t references;
};

struct tw__action_list {
	struct tw_action *first, *last;
};

struct tw__immediates {
	struct tw_action **buckets; /* by the low bits of the id */
	uint64_t room, count, last;
};

struct tw_action_scheduler {
	pthread_mutex_t lock;
	struct tw__bell changed; /* a run or a flush has ended, something was freed */
	struct tw_action_scheduler_config config;
	struct tw__origin origin;
	struct tw__base base; /* service NULL: none */
	uint64_t start_ns;

	bool flushing;
	pthread_t flusher;
	struct tw__action_list due, batches;
	uint64_t batch;      /* the open one: what is armed with delay 0 joins it */
	uint64_t open_count; /* the number of its actions */
	bool turn;           /* the open batch's turn has come, and the flusher must take it */

	bool requested; /* a turn for the open batch is requested from the host */
	struct tw__work work;
	bool work_out;
	bool submit; /* the thread that unlocks the mutex submits the work */
	tw_timer frame;
	uint32_t frames_out; /* frame timers whose release has not been called */

	struct tw__immediates immediates;

	uint64_t owned, objects;
	struct tw_action_scheduler_stats stats;
};

/* The entry checks of each call (mpsc/base/entry.h). */
#define tw__actions_check(scheduler) TW__ORIGIN_CHECK(__func__, scheduler, "scheduler")
#define TW__ACTION_CHECK(call, action) \
	TW__ORIGIN_CHECK(call, (action) ? (action)->scheduler : NULL, "action")
#define tw__action_check(action) TW__ACTION_CHECK(__func__, action)

static inline void tw__actions_lock(tw_action_scheduler *scheduler)
{
	pthread_mutex_lock(&scheduler->lock);
}

/*
 * Unlocks the mutex, and submits the work if that was asked for. The scheduler may be gone
 * afterwards unless something else holds it.
 */
void tw__actions_unlock(tw_action_scheduler *scheduler);

void tw__action_append(struct tw__action_list *list, struct tw_action *action);
void tw__action_unlink(struct tw__action_list *list, struct tw_action *action);

/* ------------------------------------------ all of these with the mutex held */

/* Tells whether the calling thread is the flusher. */
static inline bool tw__actions_mine(const tw_action_scheduler *scheduler)
{
	return scheduler->flushing && pthread_equal(scheduler->flusher, pthread_self());
}

uint64_t tw__actions_now(tw_action_scheduler *scheduler);

static inline void tw__action_set_location(struct tw_action *action,
					   enum tw__action_location location)
{
	uint64_t was = action->location != TW__ACTION_NOWHERE, is = location != TW__ACTION_NOWHERE;
	action->scheduler->stats.armed += is - was;
	action->location = location;
}

/*
 * Schedules a timer at an instant of the service's clock, on the scheduler's executor. It runs
 * without a context: the actions carry contexts of their own.
 */
int tw__actions_schedule(tw_action_scheduler *scheduler, uint64_t at_ns, tw_fn *fn, void *arg,
			 tw_release_fn *release, tw_timer *out);

/* Takes an armed action from its list or timer. Its context stays. */
void tw__action_detach(struct tw_action *action);

/* Gives up a reference: the last one frees the action. */
void tw__action_put(struct tw_action *action);

/* The owner gives the action up, if he has not done so. */
void tw__action_disown(struct tw_action *action);

struct tw_action *tw__action_new(tw_action_scheduler *scheduler);

static inline bool tw__actions_cancel_batch(const tw_action_scheduler *scheduler)
{
	return scheduler->config.flags & TW_ACTION_FLAG_CANCEL_BATCH;
}

/* No lock is held, nothing runs, nothing is left. */
void tw__actions_free(tw_action_scheduler *scheduler);

#endif
