/*
 * Ends of actions: close, release, wait.
 *
 * An open action ends once: in the call that closes it, or if it runs then, when its run has
 * returned. The thread that ends it calls its release, without the mutex. From the end until the
 * release has returned the action is pinned and counts as running. So no other thread gets the
 * answer that nothing of it runs any more.
 */

#include "executor/action/close.h"
#include "executor/action/host.h"

/* ------------------------------------------------------------------- releases */

/* Releases that this thread is inside of, innermost first. */
struct frame {
	const tw_action_scheduler *scheduler;
	struct frame *outer;
};

static _Thread_local struct frame *innermost;

bool tw__actions_in_release(const tw_action_scheduler *scheduler)
{
	const struct frame *frame = innermost;
	while (frame && frame->scheduler != scheduler)
		frame = frame->outer;
	return frame;
}

bool tw__action_ended(struct tw_action *action)
{
	TW_ASSERT_LOCKED(&action->scheduler->lock);
	if (!action->release)
		return false;
	action->releasing = true;
	action->releaser = pthread_self();
	action->pins++;
	return true;
}

void tw__action_release(struct tw_action *action)
{
	TW_ASSERT_LOCKED(&action->scheduler->lock);
	tw_action_scheduler *scheduler = action->scheduler;
	struct frame frame = {scheduler, innermost};
	pthread_mutex_unlock(&scheduler->lock);
	innermost = &frame;
	struct tw__run_level *level = tw__user_begin(scheduler->base.service, TW_RUN_KIND_RELEASE,
						     TW__NAMED_BY(action->release), 0);
	action->release(action, action->state, action->fate);
	tw__user_end(level);
	innermost = frame.outer;
	tw__actions_lock(scheduler);
	action->releasing = false;
	action->pins--;
	tw__action_put(action);
	tw__bell_ring(&scheduler->changed);
}

/* --------------------------------------------------------------------- closing */

bool tw__action_close(struct tw_action *action, enum tw_fate fate,
		      struct tw__action_deferred *deferred)
{
	TW_ASSERT_LOCKED(&action->scheduler->lock);
	if (action->closed)
		return false;
	action->closed = true;
	action->fate = fate;
	tw__action_detach(action, deferred);
	deferred->context = action->context;
	action->context = NULL;
	if (!action->fn)
		tw__immediate_gone(action);
	return !action->running && tw__action_ended(action);
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
 * The mutex is held, and released here. If the action has ended here it is pinned, so it and the
 * scheduler stay.
 */
static void unlock_and_release(struct tw_action *action, bool ended,
			       const struct tw__action_deferred *deferred)
{
	tw_action_scheduler *scheduler = action->scheduler;
	tw__actions_unlock(scheduler, deferred);
	if (!ended)
		return;
	tw__actions_lock(scheduler);
	tw__action_release(action);
	pthread_mutex_unlock(&scheduler->lock);
}

/*
 * A second destroy, from the action's own release or from `failed`, finds that the first has given
 * the action up.
 */
int tw_action_destroy(tw_action *action)
{
	struct tw__action_deferred deferred = {0};
	if (!action)
		return TW_GONE;
	int r = tw__action_check(action);
	if (r)
		return r;
	tw_action_scheduler *scheduler = action->scheduler;
	tw__actions_lock(scheduler);
	enum tw_outcome outcome = outcome_of(action);
	bool ended = tw__action_close(action, TW_FATE_CANCELLED, &deferred);
	scheduler->owned -= action->owned;
	action->owned = false;
	if (ended) {
		unlock_and_release(action, true, &deferred);
	} else {
		tw__action_put(action);
		tw__actions_unlock(scheduler, &deferred);
	}
	return outcome;
}

/* The action is pinned: its work may destroy it. */
static int await_end(struct tw_action *action, uint64_t timeout_ns)
{
	tw_action_scheduler *scheduler = action->scheduler;
	uint64_t deadline_ns = tw__deadline_in(timeout_ns);
	int outcome = TW_SELF;
	tw__actions_lock(scheduler);
	if (!is_busy_here(action)) {
		while (action_is_busy(action) &&
		       tw__bell_await(&scheduler->changed, &scheduler->lock, deadline_ns))
			continue;
		outcome = action_is_busy(action) ? TW_RUNNING : TW_FINISHED;
	}
	action->pins--;
	tw__action_put(action);
	pthread_mutex_unlock(&scheduler->lock);
	return outcome;
}

int tw_action_close(tw_action *action, uint64_t timeout_ns)
{
	struct tw__action_deferred deferred = {0};
	int r = tw__action_check(action);
	if (r)
		return r;
	tw__actions_lock(action->scheduler);
	int outcome = outcome_of(action);
	bool waits = outcome == TW_RUNNING,
	     ended = tw__action_close(action, TW_FATE_CANCELLED, &deferred);
	action->pins += waits;
	unlock_and_release(action, ended, &deferred);
	return waits ? await_end(action, timeout_ns) : outcome;
}
