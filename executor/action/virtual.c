/*
 * The virtual clock: a heap by (time, arming); with a seed, by (time, permuted arming).
 *
 * The permutation is a bijection of the number of the arming (the finalizer of G. Steele, D. Lea
 * and C. Flood's SplitMix64, 2014), so no two results are equal.
 */

#include "executor/action/virtual.h"
#include "executor/action/arm.h"
#include "executor/action/flush.h"

static uint64_t order_of(uint64_t arming, uint64_t seed)
{
	if (!seed)
		return arming;
	uint64_t z = arming + seed * UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

int tw__action_join_heap(struct tw_action *action, uint64_t at_ns,
			 struct tw__action_deferred *deferred)
{
	TW_ASSERT_LOCKED(&action->scheduler->lock);
	tw_action_scheduler *scheduler = action->scheduler;
	if (at_ns > INT64_MAX)
		return -ERANGE; /* arm.c tells */
	int r = tw__heap_reserve(&scheduler->virtual.heap, scheduler->virtual.heap.count + 1);
	if (r)
		return r;
	tw__action_detach(action, deferred);
	/* planted: armings_reversed */
	action->item.id = order_of(++scheduler->virtual.armings, scheduler->config.seed);
	tw__heap_push_reserved(&scheduler->virtual.heap, &action->item, (int64_t)at_ns);
	tw__action_set_location(action, TW__ACTION_VIRTUAL);
	return 0;
}

static struct tw_action *first_until(tw_action_scheduler *scheduler, uint64_t until_ns)
{
	struct tw__heap_item *first = tw__heap_peek(&scheduler->virtual.heap);
	if (!first || (uint64_t)tw__heap_key(&scheduler->virtual.heap, first) > until_ns)
		return NULL;
	return (struct tw_action *)(void *)first; /* item is its first member */
}

/*
 * What is due at this instant goes to the due list, in order, and is flushed from there. What joins
 * it meanwhile does, too.
 */
static void take_next(struct tw_action *action)
{
	struct tw__action_deferred none = {0};
	tw__action_detach(action, &none); /* from the heap, so `none` stays empty */
	tw__action_join_due(action, 0);
}

/* With TW_ACTION_FLAG_CANCEL_BATCH a failure closes what else is due at the clock's instant. */
static void take_instant(tw_action_scheduler *scheduler)
{
	struct tw_action *action;
	while ((action = first_until(scheduler, scheduler->virtual.now_ns)))
		take_next(action);
}

/* Returns the first failure, after which it continues or not. */
static int action_run_until(tw_action_scheduler *scheduler, uint64_t until_ns)
{
	struct tw_action *action;
	int first = 0;
	while (!(first && tw__actions_cancel_batch(scheduler)) &&
	       (action = first_until(scheduler, until_ns))) {
		uint64_t at_ns = (uint64_t)tw__heap_key(&scheduler->virtual.heap, &action->item);
		if (at_ns > scheduler->virtual.now_ns)
			scheduler->virtual.now_ns = at_ns;
		take_next(action);
		int failure = tw__actions_run_one_due(scheduler, first != 0, take_instant);
		first = first ? first : failure;
	}
	return first;
}

static int drive(tw_action_scheduler *scheduler, uint64_t until_ns, bool stand_there)
{
	tw__actions_lock(scheduler);
	int r = scheduler->flushing ? -EBUSY : 0;
	if (!r) {
		tw__actions_begin(scheduler);
		r = action_run_until(scheduler, until_ns);
		bool stopped = r && tw__actions_cancel_batch(scheduler);
		if (!stopped && stand_there && until_ns > scheduler->virtual.now_ns)
			scheduler->virtual.now_ns = until_ns;
		tw__actions_serve(scheduler);
	}
	pthread_mutex_unlock(&scheduler->lock);
	return r;
}

int tw__actions_flush_virtual(tw_action_scheduler *scheduler)
{
	const struct tw_action_scheduler_config *config = &scheduler->config;
	return drive(scheduler,
		     config->max_frames ? config->max_frames * config->frame_ns : UINT64_MAX,
		     false);
}

/* at_ns: where the clock is to go, UINT64_MAX if that is beyond all instants. */
static int check_and_drive(const char *call, tw_action_scheduler *scheduler, uint64_t at_ns)
{
	if (scheduler->config.kind != TW_ACTION_KIND_VIRTUAL)
		return tw__refuse(-EINVAL, call, "the scheduler's kind must be VIRTUAL");
	if (at_ns > TW_MAX_DELAY_NS)
		return tw__refuse(-ERANGE, call, "the clock would be beyond TW_MAX_DELAY_NS");
	return drive(scheduler, at_ns, true);
}

int tw_action_scheduler_advance_to(tw_action_scheduler *scheduler, uint64_t at_ns)
{
	int r = tw__actions_check(scheduler);
	return r ? r : check_and_drive(__func__, scheduler, at_ns);
}

int tw_action_scheduler_advance(tw_action_scheduler *scheduler, uint64_t by_ns)
{
	int r = tw__actions_check(scheduler);
	if (r)
		return r;
	uint64_t now_ns = tw_action_scheduler_now(scheduler);
	return check_and_drive(__func__, scheduler,
			       by_ns > TW_MAX_DELAY_NS ? UINT64_MAX : now_ns + by_ns);
}
