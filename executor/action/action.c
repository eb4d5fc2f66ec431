/* Schedulers of actions: creation, end, statistics. Creation of actions. */

#include "wheel/core/frame.h"
#include "wheel/timer/cancel.h"
#include "executor/action/close.h"
#include "executor/action/host.h"

enum { KNOWN_FLAGS = TW_ACTION_FLAG_BY_CALLER | TW_ACTION_FLAG_CANCEL_BATCH };

/* ---------------------------------------------------------------------- lists */

void tw__action_append(struct tw__action_list *list, struct tw_action *action)
{
	action->next = NULL;
	action->previous = list->last;
	*(list->last ? &list->last->next : &list->first) = action;
	list->last = action;
}

void tw__action_unlink(struct tw__action_list *list, struct tw_action *action)
{
	*(action->previous ? &action->previous->next : &list->first) = action->next;
	*(action->next ? &action->next->previous : &list->last) = action->previous;
}

void tw__actions_unlock(tw_action_scheduler *scheduler)
{
	bool submit = scheduler->submit;
	scheduler->submit = false;
	pthread_mutex_unlock(&scheduler->lock);
	if (submit)
		tw__work_submit(&scheduler->work); /* out, which holds the scheduler */
}

/* ----------------------------------------------------------------- schedulers */

static int actions_config_check(const struct tw_action_scheduler_config *c)
{
	const char *bad = NULL;
	bool batches = c->kind == TW_ACTION_KIND_ASAP || c->kind == TW_ACTION_KIND_FRAME;
	bool by_caller = c->flags & TW_ACTION_FLAG_BY_CALLER;
	uint32_t most_frames = c->kind == TW_ACTION_KIND_FRAME ? 1000 : 0;
	tw__need(&bad, (unsigned)c->kind <= TW_ACTION_KIND_FRAME, "kind");
	tw__need(&bad, !(c->flags & ~(uint32_t)KNOWN_FLAGS) && (batches || !by_caller), "flags");
	tw__need(&bad, !c->reserved, "reserved");
	tw__need(&bad, by_caller || !c->wanted, "wanted");
	tw__need(&bad, c->frames_per_second <= most_frames, "frames_per_second");
	tw__need(&bad, c->service || c->kind == TW_ACTION_KIND_QUEUE || by_caller, "service");
	tw__need(&bad, !c->executor || (c->service && tw__executor_is_sound(c->executor)),
		 "executor");
	return tw__bad_member(-EINVAL, "tw_action_scheduler_create", "tw_action_scheduler_config",
			      bad);
}

static void free_memory(tw_action_scheduler *scheduler)
{
	free(scheduler->immediates.buckets);
	pthread_mutex_destroy(&scheduler->lock);
	free(scheduler);
}

void tw__actions_free(tw_action_scheduler *scheduler)
{
	if (scheduler->base.service)
		tw__layer_let_go(&scheduler->base);
	free_memory(scheduler);
}

static int action_make(tw_action_scheduler **out, const struct tw_action_scheduler_config *config)
{
	tw_action_scheduler *scheduler = calloc(1, sizeof *scheduler);
	if (!scheduler || !tw__origin_init(&scheduler->origin)) {
		free(scheduler);
		return -ENOMEM;
	}
	scheduler->config = *config;
	scheduler->batch = 1;
	pthread_mutex_init(&scheduler->lock, NULL);
	int r = config->service
		    ? tw__layer_hold(&scheduler->base, config->service, config->executor)
		    : 0;
	if (r) {
		scheduler->base.service = NULL;
		tw__actions_free(scheduler);
		return r;
	}
	scheduler->start_ns = tw__actions_now(scheduler);
	tw__actions_host_init(scheduler);
	*out = scheduler;
	return 0;
}

int tw_action_scheduler_create(tw_action_scheduler **out,
			       const struct tw_action_scheduler_config *cfg)
{
	struct tw_action_scheduler_config config;
	if (!out || !cfg)
		return tw__invalid("%s is NULL", out ? "cfg" : "out");
	int r = TW__STRUCT_READ(tw_action_scheduler_config, &config, service, cfg);
	if (!r)
		r = actions_config_check(&config);
	if (r)
		return r;
	if (!config.frames_per_second)
		config.frames_per_second = 60;
	return action_make(out, &config);
}

/*
 * Tells whether a requested turn comes without the caller: a full pool leaves it to the service's
 * driver.
 */
static bool work_comes(const tw_action_scheduler *scheduler)
{
	const struct tw__base *base = &scheduler->base;
	return scheduler->work_out && tw__pool_of(base->executor) && base->service->threaded &&
	       tw__base_may_wait(base);
}

static int actions_end_forked(tw_action_scheduler *s)
{
	if (s->owned > s->immediates.count)
		return -EBUSY;
	if (s->base.service)
		tw__base_let_go_forked(&s->base);
	free_memory(s);
	return 0;
}

static int actions_end(tw_action_scheduler *s)
{
	tw__actions_lock(s);
	int r = tw__actions_mine(s) || tw__is_within(s) ? -EDEADLK : s->owned ? -EBUSY : 0;
	while (!r && (s->objects || s->flushing || s->frames_out || work_comes(s)))
		tw__bell_await(&s->changed, &s->lock, UINT64_MAX);
	bool free_it = !r && !s->work_out;
	if (!r && !free_it) {
		tw__base_leave_work(&s->base, &s->work);
		tw__base_leave(&s->base);
	}
	pthread_mutex_unlock(&s->lock);
	if (free_it)
		tw__actions_free(s);
	return r == -EDEADLK ? tw__waits_inside("tw_action_scheduler_destroy") : r;
}

int tw_action_scheduler_destroy(tw_action_scheduler *s)
{
	return TW__ORIGIN_DESTROY(s, actions_end_forked, actions_end);
}

uint64_t tw__actions_now(tw_action_scheduler *scheduler)
{
	return scheduler->base.service ? tw_service_now(scheduler->base.service)
				       : tw_clock_now(tw_clock_monotonic());
}

uint64_t tw_action_scheduler_now(tw_action_scheduler *scheduler)
{
	if (tw__actions_check(scheduler))
		return 0;
	tw__actions_lock(scheduler);
	uint64_t now_ns = tw__actions_now(scheduler);
	pthread_mutex_unlock(&scheduler->lock);
	return now_ns;
}

int tw_action_scheduler_stats(tw_action_scheduler *scheduler, struct tw_action_scheduler_stats *out)
{
	int r = TW__OUT_CHECK(tw_action_scheduler_stats, out, armed);
	if (!r)
		r = tw__actions_check(scheduler);
	if (r)
		return r;
	tw__actions_lock(scheduler);
	struct tw_action_scheduler_stats stats = scheduler->stats;
	stats.actions = scheduler->owned;
	pthread_mutex_unlock(&scheduler->lock);
	tw__struct_write(out, &stats, sizeof stats);
	return 0;
}

/* -------------------------------------------------------------------- actions */

struct tw_action *tw__action_new(tw_action_scheduler *scheduler)
{
	TW_ASSERT_LOCKED(&scheduler->lock);
	struct tw_action *action = calloc(1, sizeof *action);
	if (!action)
		return NULL;
	action->scheduler = scheduler;
	action->owned = true;
	action->references = 1;
	scheduler->owned++;
	scheduler->objects++;
	return action;
}

void tw__action_put(struct tw_action *action)
{
	TW_ASSERT_LOCKED(&action->scheduler->lock);
	tw_action_scheduler *scheduler = action->scheduler;
	if (--action->references)
		return;
	scheduler->objects--;
	free(action);
	tw__bell_ring(&scheduler->changed);
}

void tw__action_disown(struct tw_action *action)
{
	TW_ASSERT_LOCKED(&action->scheduler->lock);
	if (!action->owned)
		return;
	action->owned = false;
	action->scheduler->owned--;
	tw__action_put(action);
}

int tw_action_create(tw_action **out, tw_action_scheduler *scheduler, tw_action_fn *fn,
		     tw_action_release_fn *release)
{
	if (!out || !scheduler || !fn)
		return tw__invalid("%s is NULL", !out ? "out" : scheduler ? "fn" : "scheduler");
	int r = tw__actions_check(scheduler);
	if (r)
		return r;
	tw__actions_lock(scheduler);
	struct tw_action *action = tw__action_new(scheduler);
	if (action) {
		action->fn = fn;
		action->release = release;
	}
	pthread_mutex_unlock(&scheduler->lock);
	if (!action)
		return -ENOMEM;
	*out = action;
	return 0;
}

int tw__actions_schedule(tw_action_scheduler *scheduler, uint64_t at_ns, tw_fn *fn, void *arg,
			 tw_release_fn *release, tw_timer *out)
{
	const struct tw_task task = {.size = sizeof task,
				     .fn = fn,
				     .arg = arg,
				     .when_ns = at_ns,
				     .flags = TW_TASK_AT | TW_TASK_CONTEXT,
				     .release = release,
				     .executor = scheduler->config.executor};
	return tw_schedule_task(scheduler->base.service, &task, out);
}

void tw__action_detach(struct tw_action *action)
{
	TW_ASSERT_LOCKED(&action->scheduler->lock);
	tw_action_scheduler *scheduler = action->scheduler;
	switch (action->location) {
	case TW__ACTION_TIMED:
		TW_ASSERT(action->references > 1); /* the timer's, and the caller's */
		action->references -= tw__cancel_silently(scheduler->base.service, action->timer);
		break;
	case TW__ACTION_DUE:
		tw__action_unlink(&scheduler->due, action);
		action->refused = false;
		break;
	case TW__ACTION_BATCHED:
		tw__action_leave_batch(action);
		break;
	case TW__ACTION_NOWHERE:
		break;
	}
	tw__action_set_location(action, TW__ACTION_NOWHERE);
}

int tw_action_state(tw_action *action)
{
	int r = tw__action_check(action);
	if (r)
		return r;
	tw__actions_lock(action->scheduler);
	bool closed = action->closed, armed = action->location != TW__ACTION_NOWHERE;
	pthread_mutex_unlock(&action->scheduler->lock);
	return closed  ? TW_ACTION_STATE_CLOSED
	       : armed ? TW_ACTION_STATE_ARMED
		       : TW_ACTION_STATE_IDLE;
}
