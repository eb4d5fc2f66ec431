/*
 * Arming: takes an action from its list or timer to the source of its next run. If that fails, the
 * action stays as it was.
 */

#include "wheel/timer/schedule.h"
#include "wheel/timer/timing.h"
#include "executor/action/arm.h"
#include "executor/action/flush.h"
#include "executor/action/host.h"

/* ---------------------------------------------------------------------- timers */

static bool is_current(const struct tw_action *action)
{
	return action->location == TW__ACTION_TIMED && action->timer.id == tw_self().id;
}

void tw__action_join_due(struct tw_action *action, bool refused)
{
	TW_ASSERT_LOCKED(&action->scheduler->lock);
	tw__action_set_location(action, TW__ACTION_DUE);
	tw__action_append(&action->scheduler->due, action);
	action->refused = refused;
}

static void fired(void *arg)
{
	struct tw_action *action = arg;
	tw_action_scheduler *scheduler = action->scheduler;
	tw__actions_lock(scheduler);
	if (is_current(action)) {
		tw__action_join_due(action, false);
		tw__actions_drive(scheduler);
	}
	tw__actions_unlock(scheduler);
}

/* A closed strand has cancelled the timer. The flusher calls `failed`. */
static void timer_over(void *arg, enum tw_fate fate)
{
	struct tw_action *action = arg;
	tw_action_scheduler *scheduler = action->scheduler;
	tw__actions_lock(scheduler);
	if (fate != TW_FATE_FIRED && is_current(action)) {
		scheduler->stats.refused++;
		tw__action_join_due(action, true);
		tw__actions_drive(scheduler);
	}
	tw__action_put(action);
	tw__actions_unlock(scheduler);
}

static int new_timer(struct tw_action *action, uint64_t at_ns)
{
	tw_timer timer;
	int r = tw__actions_schedule(action->scheduler, at_ns, fired, action, timer_over, &timer);
	if (r)
		return r;
	action->references++;
	action->timer = timer;
	return 0;
}

/*
 * Moves the action's timer. One that is claimed at this moment will find that it does not count,
 * and another is scheduled.
 */
static int action_set_timer(struct tw_action *action, uint64_t at_ns)
{
	tw_action_scheduler *scheduler = action->scheduler;
	if (!scheduler->base.service)
		return -EINVAL; /* told after the unlock */
	if (tw__beyond_range(scheduler->base.service, at_ns))
		return -ERANGE; /* told after the unlock */
	int r = -ENOENT;
	if (action->location == TW__ACTION_TIMED)
		r = tw_reset_at(scheduler->base.service, action->timer, at_ns);
	if (r == -ENOENT || r == -EBUSY || r == -ECANCELED) {
		r = new_timer(action, at_ns);
		if (!r && action->location != TW__ACTION_TIMED)
			tw__action_detach(action);
	}
	if (!r)
		tw__action_set_location(action, TW__ACTION_TIMED);
	return r;
}

/* ----------------------------------------------------------------------- arming */

static int enlist(struct tw_action *action, uint64_t delay_ns, uint64_t due_ns)
{
	enum tw_action_kind kind = action->scheduler->config.kind;
	if (delay_ns || kind == TW_ACTION_KIND_ASYNC)
		return action_set_timer(action, due_ns);
	if (kind != TW_ACTION_KIND_QUEUE)
		return tw__action_join_batch(action);
	tw__action_detach(action);
	tw__action_join_due(action, false);
	return 0;
}

/*
 * The next nominal instant. In the action's own run with the same delay: in phase, the first
 * instant that has not passed.
 */
static uint64_t next_due(struct tw_action *action, uint64_t delay_ns)
{
	uint64_t now_ns = tw__actions_now(action->scheduler);
	bool within = action->running && tw__actions_mine(action->scheduler);
	if (!within || !delay_ns || delay_ns != action->last.delay_ns)
		return now_ns + delay_ns;
	uint64_t due_ns = action->last.due_ns + delay_ns;
	if (due_ns <= now_ns)
		due_ns += ((now_ns - due_ns) / delay_ns + 1) * delay_ns;
	return due_ns;
}

/* context: of the arming. */
static int action_arm(struct tw_action *action, void *state, uint64_t delay_ns, void *context)
{
	if (action->closed)
		return -ECANCELED;
	if (delay_ns > TW_MAX_DELAY_NS)
		return -ERANGE; /* told after the unlock */
	uint64_t due_ns = next_due(action, delay_ns);
	int r = enlist(action, delay_ns, due_ns);
	if (r)
		return r;
	action->state = state;
	action->armed.delay_ns = delay_ns;
	action->armed.due_ns = due_ns;
	action->context = context;
	return 0;
}

/* An idle queue runs what it has now. The mutex is held. */
static int drive_queue(tw_action_scheduler *scheduler)
{
	if (scheduler->config.kind != TW_ACTION_KIND_QUEUE || scheduler->flushing)
		return 0;
	tw__actions_begin(scheduler);
	int failure = tw__actions_flush_due(scheduler, false);
	tw__actions_serve(scheduler);
	return failure;
}

/* Without the lock. */
static int action_arm_tell(int error, uint64_t delay_ns)
{
	static const char call[] = "tw_action_schedule";
	if (error == -EINVAL)
		return tw__refuse(error, call, "a delay needs a scheduler with a service");
	if (error != -ERANGE)
		return error;
	if (!delay_ns)
		return tw__refuse(error, call, "the clock is at the end of its range");
	return tw__bad(error, call, "delay_ns");
}

int tw_action_schedule(tw_action *action, void *state, uint64_t delay_ns)
{
	int r = tw__action_check(action);
	if (r)
		return r;
	tw_action_scheduler *scheduler = action->scheduler;
	void *context = tw__context_capture();
	tw__actions_lock(scheduler);
	r = action_arm(action, state, delay_ns, context);
	scheduler->stats.refused += r && r != -EINVAL;
	int failure = r ? 0 : drive_queue(scheduler);
	tw__actions_unlock(scheduler);
	return r ? action_arm_tell(r, delay_ns) : failure;
}
