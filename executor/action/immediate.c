/* Immediates: actions with a number as their handle, in the batches of ASAP and FRAME. */

#include "executor/action/immediate.h"
#include "executor/action/close.h"
#include "executor/action/host.h"

/*
 * A hash table by number, chained through the actions. Numbers are given in order, so those that
 * wait spread over the buckets. The table's size depends on how many wait at a time, not on how
 * long the oldest waits.
 */
static struct tw_action **bucket(tw_action_scheduler *scheduler, uint64_t id)
{
	return &scheduler->immediates.buckets[id & (scheduler->immediates.room - 1)];
}

static void insert(tw_action_scheduler *scheduler, struct tw_action *action)
{
	struct tw_action **first = bucket(scheduler, (uint64_t)action->immediate_id);
	action->chain = *first;
	*first = action;
}

static bool action_grow(tw_action_scheduler *scheduler)
{
	uint64_t room = scheduler->immediates.room, twice = room ? 2 * room : 16;
	if (scheduler->immediates.count < room)
		return true;
	struct tw_action **former = scheduler->immediates.buckets, *action;
	/* NOLINTNEXTLINE(bugprone-sizeof-expression): buckets are pointers */
	struct tw_action **buckets = calloc(twice, sizeof(*buckets));
	if (!buckets)
		return false;
	scheduler->immediates.buckets = buckets;
	scheduler->immediates.room = twice;
	for (uint64_t i = 0; i < room; i++)
		while ((action = former[i])) {
			former[i] = action->chain;
			insert(scheduler, action);
		}
	free(former);
	return true;
}

static struct tw_action *action_find(tw_action_scheduler *scheduler, int64_t id)
{
	struct tw_action *action =
	    scheduler->immediates.room ? *bucket(scheduler, (uint64_t)id) : NULL;
	while (action && action->immediate_id != id)
		action = action->chain;
	return action;
}

void tw__immediate_gone(struct tw_action *action)
{
	TW_ASSERT_LOCKED(&action->scheduler->lock);
	tw_action_scheduler *scheduler = action->scheduler;
	if (!action->owned)
		return;
	struct tw_action **link = bucket(scheduler, (uint64_t)action->immediate_id);
	while (*link != action)
		link = &(*link)->chain;
	*link = action->chain;
	scheduler->immediates.count--;
	action->owned = false;
	scheduler->owned--;
}

static int64_t set(tw_action_scheduler *scheduler, tw_fn *fn, void *arg, void *context,
		   struct tw__action_deferred *deferred)
{
	struct tw_action *action = action_grow(scheduler) ? tw__action_new(scheduler) : NULL;
	if (!action)
		return -ENOMEM;
	int r = tw__action_join_batch(action, deferred);
	if (r) {
		scheduler->stats.refused++;
		action->owned = false;
		scheduler->owned--;
		tw__action_put(action);
		return r;
	}
	action->immediate = fn;
	action->state = arg;
	action->context = context;
	action->immediate_id = (int64_t)++scheduler->immediates.last;
	scheduler->immediates.count++;
	insert(scheduler, action);
	return action->immediate_id;
}

static int immediate_check(const char *call, const tw_action_scheduler *scheduler)
{
	int r = TW__ORIGIN_CHECK(call, scheduler, "scheduler");
	if (r)
		return r;
	enum tw_action_kind kind = scheduler->config.kind;
	if (kind == TW_ACTION_KIND_ASAP || kind == TW_ACTION_KIND_FRAME)
		return 0;
	return tw__refuse(-EINVAL, call, "the scheduler's kind must be ASAP or FRAME");
}

int tw_immediate_submit(tw_action_scheduler *scheduler, tw_fn *fn, void *arg, tw_immediate *out)
{
	int r = fn ? immediate_check(__func__, scheduler) : tw__invalid("fn is NULL");
	if (r)
		return r;
	struct tw__action_deferred deferred = {0};
	void *context = tw__context_capture();
	tw__actions_lock(scheduler);
	int64_t id = set(scheduler, fn, arg, context, &deferred);
	if (id < 0)
		deferred.context = context;
	else if (out)
		out->id = (uint64_t)id;
	tw__actions_unlock(scheduler, &deferred);
	return id < 0 ? (int)id : 0;
}

int tw_immediate_cancel(tw_action_scheduler *scheduler, tw_immediate immediate)
{
	int r = immediate_check(__func__, scheduler);
	if (r)
		return r;
	struct tw__action_deferred deferred = {0};
	tw__actions_lock(scheduler);
	struct tw_action *action = action_find(scheduler, (int64_t)immediate.id);
	if (action) {
		tw__action_close(action, TW_FATE_CANCELLED, &deferred);
		tw__action_put(action);
	}
	tw__actions_unlock(scheduler, &deferred);
	return action ? TW_CANCELLED : TW_GONE;
}
