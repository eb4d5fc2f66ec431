/* Items: options, delays, series, runs and ends. Calls the object, the nodes and the timers. */
#include "executor/base/item.h"

#include "wheel/core/frame.h"
#include "wheel/timer/schedule.h"

void tw__item_options(struct tw__item *item, const char *name, tw_release_fn *release,
		      void *context, const struct tw_period *period)
{
	item->node.flags = TW__ITEM_OPTIONS;
	item->context = context;
	item->release = release;
	item->name = name;
	item->period_ns = 0;
	if (!period)
		return;
	item->period_ns = period->period_ns;
	item->runs_left = period->count;
	item->overruns = 0;
	item->node.mode = (uint8_t)period->mode;
	item->node.missed = (uint8_t)period->missed;
}

struct tw__item *tw__item_find(struct tw__nodes *nodes, const struct tw__object *owner,
			       uint64_t handle)
{
	TW_ASSERT_TINY_LOCKED(&owner->lock);
	struct tw__node *node = tw__node_find(nodes, owner, handle);
	return node && node->state != TW__ITEM_ENDED ? (struct tw__item *)(void *)node : NULL;
}

/* ------------------------------------------------------------------------ delays */

/* On the driver. The item is TIMED, so it and its owner are there. */
static void item_is_due(void *arg)
{
	struct tw__item *item = arg;
	tw__object_push(tw__item_owner(item), (tw__link)&item->came, true);
}

int tw__item_delay(struct tw__item *item, uint32_t flags, uint64_t when_ns)
{
	struct tw__object *owner = tw__item_owner(item);
	uint8_t was = item->node.state;
	/* first: the driver may push it before this call goes on */
	item->node.state = TW__ITEM_DELAYED;
	item->node.flags |= TW__ITEM_AWAY | TW__ITEM_TIMED;
	int r = tw__object_delay(owner, flags, when_ns, item_is_due, item, &item->timer);
	if (tw_unlikely(r)) {
		item->node.state = was;
		item->node.flags &= (uint8_t) ~(TW__ITEM_AWAY | TW__ITEM_TIMED);
		return r;
	}
	tw__object_delayed_join(owner, &item->place);
	return 0;
}

void tw__item_undelay(struct tw__item *item)
{
	struct tw__object *owner = tw__item_owner(item);
	TW_ASSERT(item->node.state == TW__ITEM_DELAYED);
	tw__object_delayed_leave(owner, &item->place);
	if (tw__object_undelay(owner, item->timer)) /* else the inbox gets it */
		item->node.flags &= (uint8_t) ~(TW__ITEM_AWAY | TW__ITEM_TIMED);
}

bool tw__item_arrives_slowly(struct tw__nodes *nodes, struct tw__item *item)
{
	struct tw__object *owner = tw__item_owner(item);
	TW_ASSERT_TINY_LOCKED(&owner->lock);
	if (item->node.flags & TW__ITEM_TIMED)
		owner->users--;
	item->node.flags &= (uint8_t) ~(TW__ITEM_AWAY | TW__ITEM_TIMED);
	if (item->node.state == TW__ITEM_DELAYED) {
		tw__object_delayed_leave(owner, &item->place);
		item->node.state = TW__ITEM_QUEUED;
		return true;
	}
	if (item->node.state == TW__ITEM_ENDED)
		tw__item_put(nodes, item, NULL);
	return false; /* or its release is being called: that thread puts it */
}

/* ------------------------------------------------------------------------ series */

/* Begins a run of a series: counts passed instants as missed, unless they are made up for. */
static void series_begins(struct tw__item *item)
{
	if (item->node.mode == TW_FIXED_DELAY || item->node.missed == TW_MISSED_BURST)
		return;
	uint64_t now_ns = tw_service_now(tw__object_service(tw__item_owner(item)));
	uint64_t missed = now_ns > item->due_ns ? (now_ns - item->due_ns) / item->period_ns : 0;
	item->due_ns += missed * item->period_ns;
	item->overruns += missed;
}

bool tw__item_next(struct tw__item *item, bool *now)
{
	tw_service *service = tw__object_service(tw__item_owner(item));
	uint64_t now_ns = tw_service_now(service);
	if (item->runs_left && --item->runs_left == 0)
		return false;
	bool by_end = item->node.mode == TW_FIXED_DELAY;
	item->due_ns = (by_end ? now_ns : item->due_ns) + item->period_ns;
	if (item->due_ns <= now_ns) {
		uint64_t missed = tw__instants_missed((enum tw_missed_policy)item->node.missed,
						      item->period_ns, now_ns - item->due_ns);
		item->due_ns += missed * item->period_ns;
		item->overruns += missed;
	}
	*now = item->due_ns <= now_ns;
	return !tw__beyond_range(service, item->due_ns);
}

/* -------------------------------------------------------------------- run and end */

void tw__item_call_with_options(struct tw__item *item)
{
	struct tw__run run = {0}, *frame = &run;
	bool series = item->period_ns != 0;
	if (series) { /* tw_current tells the run what the series has missed */
		series_begins(item);
		run.overruns = item->overruns;
		item->overruns = 0;
	}
	struct tw__run_record *shown =
	    tw__layer_begin(tw__object_service(tw__item_owner(item)), item->fn, item->arg,
			    item->name, series ? &frame : NULL);
	run.outer = series ? frame : NULL;
	void *former = tw__context_enter(item->context);
	item->fn(item->arg);
	tw__context_leave(former);
	tw__user_end(shown);
	if (series)
		tw__layer_begin(NULL, NULL, NULL, NULL, &frame);
}

static void call_release(struct tw__item *item, enum tw_fate fate)
{
	struct tw__inside inside;
	tw__inside_begin(&inside, tw__item_owner(item), item, TW__NAMED_BY(item->release),
			 item->arg, item->name, item->context);
	inside.releasing = true;
	item->release(item->arg, fate);
	tw__inside_end(&inside);
}

void tw__item_end(struct tw__nodes *nodes, struct tw__item *item, enum tw_fate fate,
		  struct tw__node_batch *batch)
{
	struct tw__object *owner = tw__item_owner(item);
	TW_ASSERT_TINY_LOCKED(&owner->lock);
	if (item->node.flags & TW__ITEM_OPTIONS && item->release) {
		item->node.state = TW__ITEM_RELEASING;
		owner->releasing++;
		tw__object_unlock(owner);
		call_release(item, fate);
		tw__object_lock(owner);
		owner->releasing--;
	}
	if (item->node.flags & TW__ITEM_AWAY)
		item->node.state = TW__ITEM_ENDED;
	else
		tw__item_put(nodes, item, batch);
	tw__object_ring(owner);
}
