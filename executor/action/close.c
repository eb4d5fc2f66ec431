/*
 * Ends of actions: close, release, wait.
 *
 * An open action ends once: in the call that closes it, or if it runs then, when its run has
 * returned. The thread that ends it calls its release, without the mutex.
 * From the end until the release has returned the action is referenced and counts as running. So no
 * other thread gets the answer that nothing of it runs any more.
 */

#include "executor/action/close.h"
#include "wheel/core/frame.h"
#include "executor/action/host.h"

/* ------------------------------------------------------------------- releases */

static void call_release(struct tw_action *action)
{
	struct tw__within within;
	tw__within_begin(&within, action->scheduler);
	struct tw__run_record *shown = tw__user_begin(
	    action->scheduler->base.service, TW__NAMED_BY(action->release), action->state, NULL, 0);
	action->release(action, action->state, action->fate);
	tw__user_end(shown);
	tw__within_end(&within);
}

void tw__action_ended(struct tw_action *action)
{
	TW_ASSERT_LOCKED(&action->scheduler->lock);
	action->releasing = action->release != NULL;
	action->releaser = pthread_self();
	action->references++;
}

void tw__action_release(struct tw_action *action)
{
	TW_ASSERT_LOCKED(&action->scheduler->lock);
	tw_action_scheduler *scheduler = action->scheduler;
	if (action->release) {
		pthread_mutex_unlock(&scheduler->lock);
		call_release(action);
		tw__actions_lock(scheduler);
	}
	action->releasing = false;
	tw__action_put(action);
	tw__bell_ring(&scheduler->changed);
}

/* --------------------------------------------------------------------- closing */

bool tw__action_close(struct tw_action *action, enum tw_fate fate)
{
	TW_ASSERT_LOCKED(&action->scheduler->lock);
	if (action->closed)
		return false;
	action->closed = true;
	action->fate = fate;
	tw__action_detach(action);
	if (!action->running)
		tw__action_ended(action);
	if (!action->fn)
		tw__immediate_gone(action);
	return !action->running;
}

static bool action_is_busy(const struct tw_action *action)
{
	return action->running || action->releasing;
}

/* The calling thread runs its work, or its release. */
static bool is_busy_here(const struct tw_action *action)
{
	return (action->running && tw__actions_mine(action->scheduler)) ||
	       (action->releasing && pthread_equal(action->releaser, pthread_self()));
}

static enum tw_outcome outcome_of(const struct tw_action *action)
{
	if (action_is_busy(action))
		return TW_RUNNING;
	return action->location == TW__ACTION_NOWHERE ? TW_GONE : TW_CANCELLED;
}

/*
 * A second destroy, from the action's own release or from `failed`, finds that the first has given
 * the action up.
 */
static int action_end(tw_action *action)
{
	tw_action_scheduler *scheduler = action->scheduler;
	tw__actions_lock(scheduler);
	enum tw_outcome outcome = outcome_of(action);
	bool ended = tw__action_close(action, TW_FATE_CANCELLED);
	tw__action_disown(action);
	if (ended)
		tw__action_release(action);
	pthread_mutex_unlock(&scheduler->lock);
	return outcome;
}

/* Its scheduler's lists may be half written, and are not touched any more. */
static int action_end_forked(tw_action *action)
{
	action->scheduler->owned--;
	free(action);
	return TW_GONE;
}

int tw_action_destroy(tw_action *action)
{
	return action ? TW__ORIGIN_END(action, &action->scheduler->origin, action_end_forked,
				       action_end)
		      : TW_GONE;
}

/* Something of the action runs. The mutex is held. The work may destroy the action meanwhile. */
static int await_end(struct tw_action *action, uint64_t timeout_ns)
{
	tw_action_scheduler *scheduler = action->scheduler;
	uint64_t deadline_ns = tw__deadline_in(timeout_ns);
	if (is_busy_here(action))
		return TW_SELF;
	action->references++;
	while (action_is_busy(action) &&
	       tw__bell_await(&scheduler->changed, &scheduler->lock, deadline_ns))
		continue;
	int outcome = action_is_busy(action) ? TW_RUNNING : TW_FINISHED;
	tw__action_put(action);
	return outcome;
}

int tw_action_close(tw_action *action, uint64_t timeout_ns)
{
	int r = tw__action_check(action);
	if (r)
		return r;
	tw_action_scheduler *scheduler = action->scheduler;
	tw__actions_lock(scheduler);
	int outcome = outcome_of(action);
	if (tw__action_close(action, TW_FATE_CANCELLED))
		tw__action_release(action);
	else if (outcome == TW_RUNNING)
		outcome = await_end(action, timeout_ns);
	pthread_mutex_unlock(&scheduler->lock);
	return outcome;
}
