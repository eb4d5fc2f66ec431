/*
 * What the parts of actions share: action.c (birth, arming, closing), action/flush.c (who runs what), action/host.c (what triggers batches),
 * action/virtual.c, immediate.c.
 *
 * One mutex for each scheduler guards all of it. Never held while user code runs, nor while a timer is cancelled (its release takes
 * the mutex), nor while work is submitted (an executor may run it at once): what is to follow on the unlock is noted in a tw__rest.
 *
 * Where an armed action is
 *   TIMED    one timer of the service; its callback counts only if it is the timer that the action names (tw_self), so that a timer
 *            claimed just before it was moved or cancelled does nothing
 *   DUE      in `due`, which the flusher empties
 *   BATCHED  in `batches`, in order of batch ids; a flush takes those of one id, whatever happens to them meanwhile
 *   VIRTUAL  in the heap
 *
 * The flusher: the one thread that runs actions of the scheduler. Who finds another at it leaves the work in `due` or in
 * `turn`, and the flusher does it before it resigns. It looks for these and resigns under one hold of the mutex, so nothing is left lying.
 *
 * Memory: an action goes when it is neither owned, nor pinned (it runs), nor has timers (each until its release was called).
 */
#ifndef TW_EXECUTOR_ACTION_H
#define TW_EXECUTOR_ACTION_H

#include <pthread.h>

#include "executor/base/layer.h"
#include "executor/base/heap.h"
#include "mpsc/base/fork.h"
#include "tickwheel/action.h"
#include "wheel/timer/context.h"

enum tw__action_place { TW__ACTION_NOWHERE, TW__ACTION_TIMED, TW__ACTION_DUE, TW__ACTION_BATCHED, TW__ACTION_VIRTUAL };

/* All but the constants under the scheduler's mutex. */
struct tw_action {
	struct tw__heap_item item; /* VIRTUAL */
	tw_action_scheduler *scheduler;
	tw_action_fn *fn; /* NULL: an immediate */
	tw_fn *immediate;
	int64_t immediate_id;

	void *state;
	uint64_t delay_ns, due_ns;         /* of the arming; due: the nominal instant */
	uint64_t run_delay_ns, run_due_ns; /* of the run under way, or the last one */
	void *context;
	enum tw__action_place place;
	struct tw_action *next, *previous; /* in a list */
	uint64_t batch;
	tw_timer timer;

	bool closed, running, owned;
	uint32_t pins, timers;
};

struct tw__action_list {
	struct tw_action *first, *last;
};

struct tw_action_scheduler {
	pthread_mutex_t lock;
	pthread_cond_t changed; /* a run or a flush has ended, something was freed */
	struct tw_action_config config;
	uint32_t fork_generation;
	struct tw__base base; /* service NULL: none */
	uint64_t start_ns;

	bool flushing;
	pthread_t flusher;
	struct tw__action_list due, batches;
	uint64_t batch;      /* the open one: what is armed with delay 0 joins it */
	uint64_t open_count; /* how many are in it */
	bool turn;           /* the open batch's turn has come, and the flusher is to take it */

	bool requested; /* the host is to bring a turn for the open batch */
	struct tw__work work;
	bool work_out;
	tw_timer frame;
	uint32_t frames_out; /* frame timers whose release has not been called */
	bool orphaned;       /* destroyed while its work was out: that frees it */

	struct tw__heap heap;
	uint64_t now_ns, armings;

	struct tw_action **immediates; /* of ids [immediate_first, immediate_end) */
	uint64_t immediate_first, immediate_end, immediates_room;

	uint64_t owned, objects;
	struct tw_action_stats stats;
};

/* What is to be done when the mutex is free again. */
struct tw__rest {
	tw_timer cancel, cancel_frame;
	void *context;
	bool submit;
};

static inline bool tw__actions_forked(const tw_action_scheduler *scheduler)
{
	return tw_unlikely(scheduler->fork_generation != tw__fork_generation());
}

static inline void tw__actions_lock(tw_action_scheduler *scheduler)
{
	pthread_mutex_lock(&scheduler->lock);
}

/* Frees the mutex, then does what is left to do. */
void tw__actions_unlock(tw_action_scheduler *scheduler, const struct tw__rest *rest);

void tw__action_append(struct tw__action_list *list, struct tw_action *action);
void tw__action_unlink(struct tw__action_list *list, struct tw_action *action);

/* ------------------------------------------ all of these with the mutex held */

/* Whether the calling thread is the flusher. */
static inline bool tw__actions_mine(const tw_action_scheduler *scheduler)
{
	return scheduler->flushing && pthread_equal(scheduler->flusher, pthread_self());
}

uint64_t tw__actions_now(tw_action_scheduler *scheduler);

static inline void tw__action_set_place(struct tw_action *action, enum tw__action_place place)
{
	uint64_t was = action->place != TW__ACTION_NOWHERE, is = place != TW__ACTION_NOWHERE;
	action->scheduler->stats.armed += is - was;
	action->place = place;
}

/* Takes an armed action from where it is; its context stays. */
void tw__action_detach(struct tw_action *action, struct tw__rest *rest);

/* Closes it, detached if it was armed. */
void tw__action_close(struct tw_action *action, struct tw__rest *rest);

/* Frees it if nobody needs it any more. */
void tw__action_put(struct tw_action *action);

struct tw_action *tw__action_new(tw_action_scheduler *scheduler);

/*
 * Runs it, detached; the flusher's. context: is released. What it returned; -EPERM: this is a forked child, and the mutex is not
 * held. It comes back pinned.
 */
int tw__action_run(struct tw_action *action, void *state, void *context);

/* The flusher does all that is left in due and turn, and resigns. */
void tw__actions_serve(tw_action_scheduler *scheduler);
int tw__actions_flush_due(tw_action_scheduler *scheduler, bool tell);
int tw__actions_flush_batch(tw_action_scheduler *scheduler, bool tell);
void tw__actions_begin(tw_action_scheduler *scheduler);

/* The same for the first of `due` alone. If it fails, gather() brings what is of its batch into `due`, and all of that is closed. */
int tw__actions_run_one_due(tw_action_scheduler *scheduler, void gather(tw_action_scheduler *));

/* The host has come for the open batch. */
void tw__actions_turn(tw_action_scheduler *scheduler);

/* action/host.c: moves it into the open batch, and sees to it that the batch's turn comes. 0, or why it could not: then nothing has changed. */
int tw__action_join_batch(struct tw_action *action, struct tw__rest *rest);
void tw__action_leave_batch(struct tw_action *action, struct tw__rest *rest);
void tw__actions_host_init(tw_action_scheduler *scheduler);

/* action/virtual.c: moves it into the heap. 0, -ENOMEM, -ERANGE. */
int tw__action_join_heap(struct tw_action *action, uint64_t at_ns, struct tw__rest *rest);

/* The same, without the mutex: tw_action_flush of a virtual clock. */
int tw__actions_flush_virtual(tw_action_scheduler *scheduler);

/* action.c: no lock is held, nothing runs, nothing is left. */
void tw__actions_free(tw_action_scheduler *scheduler);

/* immediate.c */
void tw__immediate_gone(struct tw_action *action);

#endif
