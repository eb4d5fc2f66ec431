/*
 * The batch source of ASAP and FRAME, and what triggers its flushes: work on an executor, a timer
 * at the next frame, or the caller.
 *
 * The first action to join the open batch requests a turn from the host. When the last one has
 * left, the request ends. Work that is out cannot be taken back: it finds that the turn is not
 * requested. A frame's timer is cancelled.
 */

#include "executor/action/host.h"
#include "executor/action/close.h"
#include "executor/action/arm.h"
#include "executor/action/flush.h"
#include "wheel/timer/cancel.h"
#include "wheel/timer/schedule.h"

/* ------------------------------------------------------------------------- work */

static void work_came(struct tw__work *work)
{
	tw_action_scheduler *scheduler = TW__OWNER(tw_action_scheduler, work, work);
	tw__actions_lock(scheduler);
	scheduler->work_out = false;
	bool free_it = scheduler->base.left; /* destroyed meanwhile */
	if (free_it) {
		pthread_mutex_unlock(&scheduler->lock);
		tw__actions_free(scheduler);
		return;
	}
	if (scheduler->config.kind == TW_ACTION_KIND_ASAP)
		tw__actions_turn(scheduler);
	tw__actions_drive(scheduler); /* what another thread has left */
	tw__bell_ring(&scheduler->changed);
	tw__actions_unlock(scheduler);
}

void tw__actions_ask_for_work(tw_action_scheduler *scheduler)
{
	TW_ASSERT_LOCKED(&scheduler->lock);
	scheduler->submit |= !scheduler->work_out;
	scheduler->work_out = true;
}

void tw__actions_host_init(tw_action_scheduler *scheduler)
{
	if (scheduler->base.service)
		tw__work_init(&scheduler->work, scheduler->base.service, scheduler->base.executor,
			      work_came);
}

/* ----------------------------------------------------------------------- frames */

/* The next instant start + n / fps after now, rounded up. */
static uint64_t next_frame(tw_action_scheduler *scheduler)
{
	uint64_t fps = scheduler->config.frames_per_second,
		 passed_ns = tw__actions_now(scheduler) - scheduler->start_ns;
	unsigned __int128 second = 1000000000;
	uint64_t n = (uint64_t)((unsigned __int128)passed_ns * fps / second) + 1;
	return scheduler->start_ns + (uint64_t)(((unsigned __int128)n * second + fps - 1) / fps);
}

static void frame_came(void *arg)
{
	tw_action_scheduler *scheduler = arg;
	tw__actions_lock(scheduler);
	if (scheduler->frame.id == tw_self().id) {
		scheduler->frame = (tw_timer){0};
		tw__actions_turn(scheduler);
	}
	tw__actions_unlock(scheduler);
}

/*
 * No frame will come for the open batch: its actions go to `due`, where the flusher calls `failed`
 * for each.
 */
static void refuse_batch(tw_action_scheduler *scheduler)
{
	struct tw_action *action = scheduler->batches.last, *next;
	TW_ASSERT(scheduler->open_count > 0);
	scheduler->requested = scheduler->turn = false;
	for (; scheduler->open_count > 1; scheduler->open_count--)
		action = action->previous; /* to the first of the batch, which is the last one */
	for (; action; action = next) {
		next = action->next;
		tw__action_unlink(&scheduler->batches, action);
		tw__action_join_due(action, true);
		scheduler->stats.refused++;
	}
	scheduler->open_count = 0;
	tw__actions_drive(scheduler);
}

/* A closed strand cancels the frame's timer, and would cancel all further ones. */
static void frame_over(void *arg, enum tw_fate fate)
{
	tw_action_scheduler *scheduler = arg;
	tw__actions_lock(scheduler);
	if (fate != TW_FATE_FIRED && scheduler->frame.id == tw_self().id) {
		scheduler->frame = (tw_timer){0};
		scheduler->stats.refused++;
		refuse_batch(scheduler);
	}
	scheduler->frames_out--;
	tw__bell_ring(&scheduler->changed);
	tw__actions_unlock(scheduler);
}

static int ask_for_frame(tw_action_scheduler *scheduler)
{
	uint64_t at_ns = next_frame(scheduler);
	if (tw__beyond_range(scheduler->base.service, at_ns))
		return -ERANGE; /* told after the unlock */
	int r = tw__actions_schedule(scheduler, at_ns, frame_came, scheduler, frame_over,
				     &scheduler->frame);
	scheduler->frames_out += r == 0;
	return r;
}

/* ---------------------------------------------------------------------- asking */

static void tell_caller(tw_action_scheduler *scheduler, bool wanted)
{
	if (scheduler->config.wanted)
		scheduler->config.wanted(scheduler->config.wanted_arg, wanted);
}

static int action_ask(tw_action_scheduler *scheduler)
{
	if (scheduler->requested)
		return 0;
	if (scheduler->config.flags & TW_ACTION_FLAG_BY_CALLER) {
		tell_caller(scheduler, true);
	} else if (scheduler->config.kind == TW_ACTION_KIND_ASAP) {
		tw__actions_ask_for_work(scheduler);
	} else {
		int r = ask_for_frame(scheduler);
		if (r)
			return r;
	}
	scheduler->requested = true;
	scheduler->stats.turns++;
	return 0;
}

static void call_off(tw_action_scheduler *scheduler)
{
	if (!scheduler->requested)
		return;
	scheduler->requested = scheduler->turn = false;
	scheduler->stats.turns_cancelled++;
	if (scheduler->config.flags & TW_ACTION_FLAG_BY_CALLER) {
		tell_caller(scheduler, false);
	} else if (scheduler->config.kind == TW_ACTION_KIND_FRAME) {
		scheduler->frames_out -=
		    tw__cancel_silently(scheduler->base.service, scheduler->frame);
		scheduler->frame = (tw_timer){0};
	}
}

/* -------------------------------------------------------------------- the batch */

void tw__action_leave_batch(struct tw_action *action)
{
	TW_ASSERT_LOCKED(&action->scheduler->lock);
	tw_action_scheduler *scheduler = action->scheduler;
	tw__action_unlink(&scheduler->batches, action);
	if (action->batch == scheduler->batch && --scheduler->open_count == 0)
		call_off(scheduler);
}

int tw__action_join_batch(struct tw_action *action)
{
	TW_ASSERT_LOCKED(&action->scheduler->lock);
	tw_action_scheduler *scheduler = action->scheduler;
	int r = action_ask(scheduler);
	if (r)
		return r;
	/* first: it may be the only one of the batch, and leaves it to go to the end */
	scheduler->open_count++;
	tw__action_detach(action);
	tw__action_set_location(action, TW__ACTION_BATCHED);
	action->batch = scheduler->batch;
	tw__action_append(&scheduler->batches, action);
	return 0;
}

/* ----------------------------------------------------------------- immediates */

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
	struct tw_action **link = bucket(scheduler, (uint64_t)action->immediate_id);
	while (*link != action)
		link = &(*link)->chain;
	*link = action->chain;
	scheduler->immediates.count--;
	tw__action_disown(action);
}

static int64_t set(tw_action_scheduler *scheduler, tw_fn *fn, void *arg, void *context)
{
	struct tw_action *action = action_grow(scheduler) ? tw__action_new(scheduler) : NULL;
	if (!action)
		return -ENOMEM;
	int r = tw__action_join_batch(action);
	if (r) {
		scheduler->stats.refused++;
		tw__action_disown(action);
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
	void *context = tw__context_capture();
	tw__actions_lock(scheduler);
	int64_t id = set(scheduler, fn, arg, context);
	if (id > 0 && out)
		out->id = (uint64_t)id;
	tw__actions_unlock(scheduler);
	if (id > 0)
		return 0;
	if (id == -ERANGE)
		return tw__refuse(-ERANGE, __func__, "the clock is at the end of its range");
	return (int)id;
}

int tw_immediate_cancel(tw_action_scheduler *scheduler, tw_immediate immediate)
{
	int r = immediate_check(__func__, scheduler);
	if (r)
		return r;
	tw__actions_lock(scheduler);
	struct tw_action *action = action_find(scheduler, (int64_t)immediate.id);
	if (action && tw__action_close(action, TW_FATE_CANCELLED))
		tw__action_release(action);
	pthread_mutex_unlock(&scheduler->lock);
	return action ? TW_CANCELLED : TW_GONE;
}
