/*
 * Ends of actions: leaving a line, close, release, wait. Calls executor/base.
 *
 * An open action ends once: in the call that closes it, or if it runs then, when its run has
 * returned. The thread that ends it calls its release, without the lock. Until that has returned
 * the action is referenced and counts as running.
 */

#include "executor/action/internal.h"
#include "mpsc/base/reserve.h"

void tw__action_put(struct tw_action *action)
{
	struct tw__object *object = &action->scheduler->object;
	TW_ASSERT_TINY_LOCKED(&object->lock);
	if (--action->references)
		return;
	tw__free(action);
	object->users--; /* not the last one: a call, a run or a timer of the action */
	tw__object_ring(object);
}

void tw__action_disown(struct tw_action *action)
{
	TW_ASSERT_TINY_LOCKED(&action->scheduler->object.lock);
	if (!action->owned)
		return;
	action->owned = false;
	action->scheduler->owned--;
	tw__action_put(action);
}

/* Nothing is left that wanted the open batch's turn. */
static void call_off(tw_action_scheduler *scheduler)
{
	const struct tw_action_scheduler_config *config = &scheduler->config;
	if (!scheduler->requested)
		return;
	scheduler->requested = scheduler->turn = false;
	scheduler->stats.turns_cancelled++;
	if (config->flags & TW_ACTION_FLAG_BY_CALLER) {
		if (config->wanted)
			config->wanted(config->wanted_arg, false);
	} else if (config->kind == TW_ACTION_KIND_FRAME) {
		tw__object_undelay(&scheduler->object, scheduler->frame);
		scheduler->frame = (tw_timer){0};
	}
}

void tw__action_join(struct tw_action *action, struct tw__line *line)
{
	TW_ASSERT(!action->line);
	action->line = line;
	tw__line_append(line, tw__in_line_link(&action->place));
	action->scheduler->stats.armed++;
}

void tw__action_leave(struct tw_action *action)
{
	tw_action_scheduler *scheduler = action->scheduler;
	tw__line_leave(action->line, &action->place);
	action->line = NULL;
	scheduler->stats.armed--;
	if (!action->immediate)
		return;
	*tw__immediate_at(scheduler, action->immediate_id) = NULL;
	scheduler->waiting--;
	tw__action_disown(action);
}

void tw__action_detach(struct tw_action *action)
{
	tw_action_scheduler *scheduler = action->scheduler;
	struct tw__line *line = action->line;
	TW_ASSERT_TINY_LOCKED(&scheduler->object.lock);
	if (!line)
		return;
	if (line == &scheduler->timed) /* the timer's reference is not the last one */
		action->references -= tw__object_undelay(&scheduler->object, action->timer);
	tw__action_leave(action);
	if (line == scheduler->open && !line->first)
		call_off(scheduler);
}

/* ---------------------------------------------------------------- close and release */

bool tw__action_close(struct tw_action *action, enum tw_fate fate)
{
	TW_ASSERT_TINY_LOCKED(&action->scheduler->object.lock);
	if (action->closed)
		return false;
	action->closed = true;
	action->releasing = action->release != NULL;
	action->fate = fate;
	action->references++;
	tw__action_detach(action);
	if (action->running)
		return false;
	action->thread = pthread_self();
	return true;
}

void tw__action_release(struct tw_action *action)
{
	tw_action_scheduler *scheduler = action->scheduler;
	struct tw__inside inside;
	TW_ASSERT_TINY_LOCKED(&scheduler->object.lock);
	if (action->release) {
		tw__object_unlock(&scheduler->object);
		tw__inside_begin(&inside, &scheduler->object, action, TW__NAMED_BY(action->release),
				 action->state, NULL, tw__context_capture());
		action->release(action, action->state, action->fate);
		tw__inside_end(&inside);
		tw__object_lock(&scheduler->object);
	}
	action->releasing = false;
	tw__action_put(action);
	tw__object_ring(&scheduler->object);
}

/* ------------------------------------------------------------------------- the calls */

static bool is_busy(const struct tw_action *action)
{
	return action->running || action->releasing;
}

static enum tw_outcome outcome_of(const struct tw_action *action)
{
	return is_busy(action) ? TW_RUNNING : action->line ? TW_CANCELLED : TW_GONE;
}

/* Something of the action runs. The lock is held. The work may destroy the action meanwhile. */
static int await_end(struct tw_action *action, uint64_t timeout_ns)
{
	tw_action_scheduler *scheduler = action->scheduler;
	uint64_t deadline_ns = tw__deadline_in(timeout_ns);
	if (pthread_equal(action->thread, pthread_self()))
		return TW_SELF;
	action->references++;
	while (is_busy(action) && tw__object_await(&scheduler->object, deadline_ns))
		continue;
	int outcome = is_busy(action) ? TW_RUNNING : TW_FINISHED;
	tw__action_put(action);
	return outcome;
}

int tw_action_close(tw_action *action, uint64_t timeout_ns)
{
	int r = TW__ACTION_CHECK(action);
	if (r)
		return r;
	tw_action_scheduler *scheduler = action->scheduler;
	tw__object_lock(&scheduler->object);
	int outcome = outcome_of(action);
	if (tw__action_close(action, TW_FATE_CANCELLED))
		tw__action_release(action);
	else if (outcome == TW_RUNNING)
		outcome = await_end(action, timeout_ns);
	tw__actions_unlock(scheduler, 0);
	return outcome;
}

/*
 * In a forked child the lists may be half written. A second destroy, from the action's release or
 * from `failed`, finds that the first has given the action up.
 */
int tw_action_destroy(tw_action *action)
{
	if (!action)
		return TW_GONE;
	tw_action_scheduler *scheduler = action->scheduler;
	if (tw__origin_inherited(&scheduler->origin)) {
		scheduler->owned--;
		tw__free(action);
		return TW_GONE;
	}
	tw__object_lock(&scheduler->object);
	enum tw_outcome outcome = outcome_of(action);
	bool ended = tw__action_close(action, TW_FATE_CANCELLED);
	tw__action_disown(action);
	if (ended)
		tw__action_release(action);
	tw__actions_unlock(scheduler, 0);
	return outcome;
}

int tw_action_state(tw_action *action)
{
	int r = TW__ACTION_CHECK(action);
	if (r)
		return r;
	tw__object_lock(&action->scheduler->object);
	bool closed = action->closed, armed = action->line;
	tw__object_unlock(&action->scheduler->object);
	return closed  ? TW_ACTION_STATE_CLOSED
	       : armed ? TW_ACTION_STATE_ARMED
		       : TW_ACTION_STATE_IDLE;
}
