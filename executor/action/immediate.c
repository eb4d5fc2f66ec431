/* Immediates: actions without a handle but a number, in the batches of ASAP and FRAME. */
#include <errno.h>
#include <stdlib.h>

#include "executor/action/internal.h"

/* Numbers are given in turn and mostly end in turn: a ring over those between the first that waits and the last given. */
static struct tw_action **cell(tw_action_scheduler *scheduler, uint64_t id)
{
	return &scheduler->immediates[id & (scheduler->immediates_room - 1)];
}

static bool grow(tw_action_scheduler *scheduler)
{
	uint64_t room = scheduler->immediates_room, count = scheduler->immediate_end - scheduler->immediate_first;
	if (count < room)
		return true;
	uint64_t twice = room ? 2 * room : 16;
	/* NOLINTNEXTLINE(bugprone-sizeof-expression): cells are pointers */
	struct tw_action **cells = calloc(twice, sizeof(*cells));
	if (!cells)
		return false;
	for (uint64_t id = scheduler->immediate_first; id < scheduler->immediate_end; id++)
		cells[id & (twice - 1)] = *cell(scheduler, id);
	free(scheduler->immediates);
	scheduler->immediates = cells;
	scheduler->immediates_room = twice;
	return true;
}

void tw__immediate_gone(struct tw_action *action)
{
	tw_action_scheduler *scheduler = action->scheduler;
	uint64_t id = (uint64_t)action->immediate_id;
	if (!action->owned)
		return;
	action->owned = false;
	scheduler->owned--;
	*cell(scheduler, id) = NULL;
	while (scheduler->immediate_first < scheduler->immediate_end && !*cell(scheduler, scheduler->immediate_first))
		scheduler->immediate_first++;
}

static int64_t set(tw_action_scheduler *scheduler, tw_fn *fn, void *arg, void *context, struct tw__rest *rest)
{
	struct tw_action *action = grow(scheduler) ? tw__action_new(scheduler) : NULL;
	if (!action)
		return -ENOMEM;
	int r = tw__action_join_batch(action, rest);
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
	action->immediate_id = (int64_t)scheduler->immediate_end++;
	*cell(scheduler, (uint64_t)action->immediate_id) = action;
	return action->immediate_id;
}

static int check(const tw_action_scheduler *scheduler)
{
	if (!scheduler)
		return -EINVAL;
	if (tw__actions_forked(scheduler))
		return -EPERM;
	enum tw_action_kind kind = scheduler->config.kind;
	return kind == TW_ACTION_ASAP || kind == TW_ACTION_FRAME ? 0 : -EINVAL;
}

int64_t tw_set_immediate(tw_action_scheduler *scheduler, tw_fn *fn, void *arg)
{
	int r = fn ? check(scheduler) : -EINVAL;
	if (r)
		return r;
	struct tw__rest rest = {0};
	void *context = tw__context_capture();
	tw__actions_lock(scheduler);
	int64_t id = set(scheduler, fn, arg, context, &rest);
	if (id < 0)
		rest.context = context;
	tw__actions_unlock(scheduler, &rest);
	return id;
}

int tw_clear_immediate(tw_action_scheduler *scheduler, int64_t id)
{
	int r = check(scheduler);
	if (r)
		return r;
	struct tw__rest rest = {0};
	tw__actions_lock(scheduler);
	bool within = id >= (int64_t)scheduler->immediate_first && id < (int64_t)scheduler->immediate_end;
	struct tw_action *action = within ? *cell(scheduler, (uint64_t)id) : NULL;
	if (action) {
		tw__action_close(action, &rest);
		tw__action_put(action);
	}
	tw__actions_unlock(scheduler, &rest);
	return action ? TW_CANCELLED : TW_GONE;
}
