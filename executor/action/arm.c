/* Arming: from wherever an action is to where its next run comes from. Whatever fails, it stays where it is. */
#include <errno.h>

#include "executor/action/internal.h"

/* ---------------------------------------------------------------------- timers */

static void fired(void *arg)
{
	struct tw_action *action = arg;
	tw_action_scheduler *scheduler = action->scheduler;
	struct tw__rest rest = {0};
	tw__actions_lock(scheduler);
	if (action->place == TW__ACTION_TIMED && action->timer.id == tw_self().id) {
		tw__action_set_place(action, TW__ACTION_DUE);
		tw__action_append(&scheduler->due, action);
		if (!scheduler->flushing) {
			tw__actions_begin(scheduler);
			tw__actions_serve(scheduler);
		}
	}
	tw__actions_unlock(scheduler, &rest);
}

/* Its executor has refused it, and the service's policy is to drop: it is armed no more. */
static void lost(struct tw_action *action)
{
	tw_action_scheduler *scheduler = action->scheduler;
	struct tw__rest rest = {.context = action->context};
	tw_action_failed_fn *failed = scheduler->config.failed;
	tw__action_set_place(action, TW__ACTION_NOWHERE);
	action->context = NULL;
	scheduler->stats.refused++;
	scheduler->stats.untold += !failed;
	action->pins++;
	tw__actions_unlock(scheduler, &rest);
	if (failed)
		failed(scheduler->config.failed_arg, action, -EAGAIN, 0);
	if (tw__actions_forked(scheduler))
		return;
	tw__actions_lock(scheduler);
	action->pins--;
}

static void timer_over(void *arg, enum tw_fate fate)
{
	struct tw_action *action = arg;
	tw_action_scheduler *scheduler = action->scheduler;
	struct tw__rest rest = {0};
	tw__actions_lock(scheduler);
	if (fate != TW_FATE_FIRED && action->place == TW__ACTION_TIMED && action->timer.id == tw_self().id)
		lost(action);
	if (tw__actions_forked(scheduler))
		return;
	action->timers--;
	tw__action_put(action);
	tw__actions_unlock(scheduler, &rest);
}

static int new_timer(struct tw_action *action, uint64_t at_ns)
{
	tw_action_scheduler *scheduler = action->scheduler;
	struct tw_task task = {.size = sizeof task,
			       .fn = fired,
			       .arg = action,
			       .when_ns = at_ns,
			       .flags = TW_TASK_AT | TW_TASK_CONTEXT, /* the action has its own */
			       .release = timer_over,
			       .executor = scheduler->config.executor};
	tw_timer timer;
	int r = tw_schedule_task(scheduler->base.service, &task, &timer);
	if (r)
		return r;
	action->timers++;
	action->timer = timer;
	return 0;
}

/* The timer it has is moved; one that is claimed at this moment will find that it does not count, and another is made. */
static int set_timer(struct tw_action *action, uint64_t at_ns, struct tw__rest *rest)
{
	tw_action_scheduler *scheduler = action->scheduler;
	if (!scheduler->base.service)
		return -EINVAL;
	int r = -ENOENT;
	if (action->place == TW__ACTION_TIMED)
		r = tw_reset_at(scheduler->base.service, action->timer, at_ns);
	if (r == -ENOENT || r == -EBUSY || r == -ECANCELED) {
		r = new_timer(action, at_ns);
		if (!r && action->place != TW__ACTION_TIMED)
			tw__action_detach(action, rest);
	}
	if (!r)
		tw__action_set_place(action, TW__ACTION_TIMED);
	return r;
}

/* ----------------------------------------------------------------------- arming */

static int join_due(struct tw_action *action, struct tw__rest *rest)
{
	tw__action_detach(action, rest);
	tw__action_set_place(action, TW__ACTION_DUE);
	tw__action_append(&action->scheduler->due, action);
	return 0;
}

static int place(struct tw_action *action, uint64_t delay_ns, uint64_t due_ns, struct tw__rest *rest)
{
	enum tw_action_kind kind = action->scheduler->config.kind;
	if (kind == TW_ACTION_VIRTUAL)
		return tw__action_join_heap(action, due_ns, rest);
	if (delay_ns || kind == TW_ACTION_ASYNC)
		return set_timer(action, due_ns, rest);
	return kind == TW_ACTION_QUEUE ? join_due(action, rest) : tw__action_join_batch(action, rest);
}

/* The next nominal instant. In its own run with the same delay: in phase, the first that is not past. */
static uint64_t next_due(struct tw_action *action, uint64_t delay_ns)
{
	uint64_t now_ns = tw__actions_now(action->scheduler);
	bool within = action->running && tw__actions_mine(action->scheduler);
	if (!within || !delay_ns || delay_ns != action->run_delay_ns)
		return now_ns + delay_ns;
	uint64_t due_ns = action->run_due_ns + delay_ns;
	if (due_ns <= now_ns)
		due_ns += ((now_ns - due_ns) / delay_ns + 1) * delay_ns;
	return due_ns;
}

static int arm(struct tw_action *action, void *state, uint64_t delay_ns, void *context, struct tw__rest *rest)
{
	if (action->closed)
		return -ECANCELED;
	if (delay_ns > TW_MAX_DELAY_NS)
		return -ERANGE;
	uint64_t due_ns = next_due(action, delay_ns);
	int r = place(action, delay_ns, due_ns, rest);
	if (r)
		return r;
	action->state = state;
	action->delay_ns = delay_ns;
	action->due_ns = due_ns;
	rest->context = action->context;
	action->context = context;
	return 0;
}

/* A queue runs what it has at once, unless it is at it already. */
static int drive_queue(tw_action_scheduler *scheduler)
{
	if (scheduler->config.kind != TW_ACTION_QUEUE || scheduler->flushing || !scheduler->due.first)
		return 0;
	tw__actions_begin(scheduler);
	int r = tw__actions_flush_due(scheduler, false);
	tw__actions_serve(scheduler);
	return r;
}

/* 0, or why it was refused; *failure: of a queue that this has driven. */
static int arm_and_drive(struct tw_action *action, void *state, uint64_t delay_ns, int *failure)
{
	tw_action_scheduler *scheduler = action->scheduler;
	*failure = 0;
	if (tw__actions_forked(scheduler))
		return -EPERM;
	struct tw__rest rest = {0}, none = {0};
	void *context = tw__context_capture();
	tw__actions_lock(scheduler);
	int r = arm(action, state, delay_ns, context, &rest);
	if (r) {
		rest.context = context;
		scheduler->stats.refused += r != -EINVAL;
	}
	tw__actions_unlock(scheduler, &rest);
	if (r || scheduler->config.kind != TW_ACTION_QUEUE)
		return r;
	tw__actions_lock(scheduler);
	*failure = drive_queue(scheduler);
	tw__actions_unlock(scheduler, &none);
	return 0;
}

tw_action *tw_action_arm(tw_action *action, void *state, uint64_t delay_ns, int *error)
{
	int failure = 0, r = action ? arm_and_drive(action, state, delay_ns, &failure) : -EINVAL;
	if (error)
		*error = r ? r : failure;
	return action;
}

tw_action *tw_action_schedule(tw_action_scheduler *scheduler, tw_action_fn *fn, void *state, uint64_t delay_ns,
			      int *error)
{
	tw_action *action = NULL;
	int failure = 0, r = tw_action_create(&action, scheduler, fn);
	if (!r) {
		r = arm_and_drive(action, state, delay_ns, &failure);
		if (r) {
			tw_action_destroy(action);
			action = NULL;
		}
	}
	if (error)
		*error = r ? r : failure;
	return action;
}
