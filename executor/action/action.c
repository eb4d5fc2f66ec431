/*
 * Schedulers of actions, the arming of actions, what brings the turns of ASAP and FRAME, and
 * immediates. Calls flush.c, end.c and executor/base.
 *
 * The first action to join the open batch requests a turn from the host: work on an executor, a
 * timer at the next frame, or the caller. When the last one leaves, the request ends (end.c).
 */

#include "executor/action/internal.h"
#include "mpsc/base/reserve.h"
#include "mpsc/base/entry.h"
#include "wheel/timer/schedule.h"

enum { KNOWN_FLAGS = TW_ACTION_FLAG_BY_CALLER | TW_ACTION_FLAG_CANCEL_BATCH };

/* ----------------------------------------------------------------- schedulers */

static int config_check(const struct tw_action_scheduler_config *c)
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

static void actions_free(struct tw__object *object)
{
	tw_action_scheduler *scheduler = TW__OWNER(tw_action_scheduler, object, object);
	tw__free(scheduler->immediates);
}

static const struct tw__object_kind actions_kind = {.size = sizeof(tw_action_scheduler),
						    .offset = offsetof(tw_action_scheduler, object),
						    .fini = actions_free};

int tw_action_scheduler_create(tw_action_scheduler **out,
			       const struct tw_action_scheduler_config *cfg)
{
	struct tw_action_scheduler_config config;
	if (!out || !cfg)
		return tw__invalid("%s is NULL", out ? "cfg" : "out");
	int r = TW__STRUCT_READ(tw_action_scheduler_config, &config, service, cfg);
	if (!r)
		r = config_check(&config);
	if (r)
		return r;
	if (!config.frames_per_second)
		config.frames_per_second = 60;
	struct tw__object *object;
	struct tw__origin origin;
	r = tw__origin_init(&origin) ? 0 : -ENOMEM;
	if (!r)
		r = tw__object_create(&object, config.service, config.executor, tw__actions_work,
				      &actions_kind);
	if (r)
		return r;
	tw_action_scheduler *scheduler = TW__OWNER(tw_action_scheduler, object, object);
	scheduler->origin = origin;
	scheduler->config = config;
	tw__line_init(&scheduler->timed);
	tw__line_init(&scheduler->came);
	tw__line_init(&scheduler->due);
	tw__line_init(&scheduler->batches[0]);
	tw__line_init(&scheduler->batches[1]);
	scheduler->open = scheduler->batches;
	scheduler->start_ns = tw__actions_now(scheduler);
	*out = scheduler;
	return 0;
}

/* Waits for runs, releases, timers and calls of destroyed actions. Work is left to the object. */
int tw_action_scheduler_destroy(tw_action_scheduler *scheduler)
{
	if (!scheduler)
		return 0;
	struct tw__object *object = &scheduler->object;
	if (tw__origin_inherited(&scheduler->origin)) {
		struct tw__base base = tw__object_base(object);
		if (scheduler->owned > scheduler->waiting)
			return -EBUSY;
		tw__object_dispose(object);
		if (base.service)
			tw__base_leave(&base, TW__BASE_OVER);
		return 0;
	}
	tw__object_lock(&scheduler->object);
	if (tw__inside_object(object, NULL) || scheduler->owned) {
		bool busy = !tw__inside_object(object, NULL);
		tw__object_unlock(object);
		return busy ? -EBUSY : tw__waits_inside(__func__);
	}
	while (object->users > 1 || scheduler->flushing)
		tw__object_await(object, UINT64_MAX);
	tw__object_destroy(object);
	return 0;
}

int tw_action_scheduler_stats(tw_action_scheduler *scheduler, struct tw_action_scheduler_stats *out)
{
	int r = TW__OUT_CHECK(tw_action_scheduler_stats, out, armed);
	if (!r)
		r = TW__ACTIONS_CHECK(__func__, scheduler);
	if (r)
		return r;
	tw__object_lock(&scheduler->object);
	struct tw_action_scheduler_stats stats = scheduler->stats;
	stats.actions = scheduler->owned;
	tw__object_unlock(&scheduler->object);
	tw__struct_write(out, &stats, sizeof stats);
	return 0;
}

/* NULL: no memory. */
static struct tw_action *new_action(tw_action_scheduler *scheduler, tw_action_fn *fn,
				    tw_action_release_fn *release)
{
	TW_ASSERT_TINY_LOCKED(&scheduler->object.lock);
	struct tw_action *action = tw__alloc_zeroed(1, sizeof *action);
	if (!action)
		return NULL;
	action->scheduler = scheduler;
	action->fn = fn;
	action->release = release;
	action->owned = true;
	action->references = 1;
	scheduler->owned++;
	tw__object_use(&scheduler->object);
	return action;
}

int tw_action_create(tw_action **out, tw_action_scheduler *scheduler, tw_action_fn *fn,
		     tw_action_release_fn *release)
{
	if (!out || !scheduler || !fn)
		return tw__invalid("%s is NULL", !out ? "out" : scheduler ? "fn" : "scheduler");
	int r = TW__ACTIONS_CHECK(__func__, scheduler);
	if (r)
		return r;
	tw__object_lock(&scheduler->object);
	struct tw_action *action = new_action(scheduler, fn, release);
	tw__object_unlock(&scheduler->object);
	if (!action)
		return -ENOMEM;
	*out = action;
	return 0;
}

/* ---------------------------------------------------------------- the host's turns */

static void frame_came(void *arg)
{
	tw_action_scheduler *scheduler = arg;
	tw__object_lock(&scheduler->object);
	if (scheduler->frame.id == tw_self().id) {
		scheduler->frame = (tw_timer){0};
		scheduler->turn = true;
		if (!scheduler->flushing)
			tw__actions_ask_for_work(scheduler);
	}
	tw__actions_unlock(scheduler, 1);
}

/* A timer at the next instant start + n / fps after now, rounded up. */
static int ask_for_frame(tw_action_scheduler *scheduler, uint64_t now_ns)
{
	uint64_t fps = scheduler->config.frames_per_second, start_ns = scheduler->start_ns;
	unsigned __int128 second = 1000000000,
			  n = (now_ns - start_ns) * (unsigned __int128)fps / second + 1;
	uint64_t at_ns = start_ns + (uint64_t)((n * second + fps - 1) / fps);
	return tw__object_delay(&scheduler->object, TW_TASK_AT, at_ns, frame_came, scheduler,
				&scheduler->frame);
}

/* Moves the action into the open batch, and requests the batch's turn. */
static int join_batch(struct tw_action *action, uint64_t now_ns)
{
	tw_action_scheduler *scheduler = action->scheduler;
	const struct tw_action_scheduler_config *config = &scheduler->config;
	if (!scheduler->requested) {
		int r = 0;
		if (!(config->flags & TW_ACTION_FLAG_BY_CALLER))
			r = config->kind == TW_ACTION_KIND_FRAME
				? ask_for_frame(scheduler, now_ns)
				: (tw__actions_ask_for_work(scheduler), 0);
		else if (config->wanted)
			config->wanted(config->wanted_arg, true);
		if (r)
			return r;
		scheduler->requested = true;
		scheduler->stats.turns++;
	}
	if (action->line == scheduler->open)
		tw__action_leave(action); /* and goes to the end, perhaps of an empty line */
	else
		tw__action_detach(action);
	tw__action_join(action, scheduler->open);
	return 0;
}

/* ---------------------------------------------------------------------- arming */

static void on_due(void *arg)
{
	struct tw_action *action = arg;
	tw_action_scheduler *scheduler = action->scheduler;
	tw__object_lock(&scheduler->object);
	if (action->line == &scheduler->timed && action->timer.id == tw_self().id) {
		tw__action_leave(action);
		tw__action_join(action, scheduler->flushing ? &scheduler->due : &scheduler->came);
		if (!scheduler->flushing)
			tw__actions_ask_for_work(scheduler);
	}
	tw__action_put(action);
	tw__actions_unlock(scheduler, 1);
}

/* Moves the action's timer. If it is claimed, it will not count, and another is scheduled. */
static int set_timer(struct tw_action *action, uint64_t at_ns)
{
	tw_action_scheduler *scheduler = action->scheduler;
	tw_timer timer;
	int r = -ENOENT;
	if (action->line == &scheduler->timed)
		r = tw_reset_at(scheduler->config.service, action->timer, at_ns);
	if (r != -ENOENT && r != -EBUSY && r != -ECANCELED)
		return r;
	r = tw__object_delay(&scheduler->object, TW_TASK_AT, at_ns, on_due, action, &timer);
	if (r)
		return r;
	tw__action_detach(action);
	action->references++;
	action->timer = timer;
	tw__action_join(action, &scheduler->timed);
	return 0;
}

/* The nominal instant. In the action's own run with the same delay: the next in phase. */
static uint64_t next_due(const struct tw_action *action, uint64_t delay_ns, uint64_t now_ns)
{
	bool within = action->running && tw__actions_mine(action->scheduler);
	if (!within || !delay_ns || delay_ns != action->ran_delay_ns)
		return now_ns + delay_ns;
	uint64_t due_ns = action->ran_due_ns + delay_ns;
	if (due_ns <= now_ns)
		due_ns += ((now_ns - due_ns) / delay_ns + 1) * delay_ns;
	return due_ns;
}

/* If that fails, the action stays as it was. The lock is held. */
static int arm(struct tw_action *action, void *state, uint64_t delay_ns, void *context,
	       uint64_t now_ns)
{
	enum tw_action_kind kind = action->scheduler->config.kind;
	if (action->closed)
		return -ECANCELED;
	uint64_t due_ns = next_due(action, delay_ns, now_ns);
	int r = 0;
	if (delay_ns || kind == TW_ACTION_KIND_ASYNC) {
		r = set_timer(action, due_ns);
	} else if (kind == TW_ACTION_KIND_QUEUE) {
		tw__action_detach(action);
		tw__action_join(action, &action->scheduler->due);
	} else {
		r = join_batch(action, now_ns);
	}
	if (r)
		return r;
	action->state = state;
	action->context = context;
	action->delay_ns = delay_ns;
	action->due_ns = due_ns;
	return 0;
}

/* Whether a timer can be set for this delay, or for the next frame. Without the lock. */
static int range_check(const char *call, const tw_action_scheduler *scheduler, uint64_t delay_ns,
		       uint64_t now_ns)
{
	tw_service *service = scheduler->config.service;
	if (!tw__action_by_timer(scheduler, delay_ns))
		return 0;
	if (delay_ns > TW_MAX_DELAY_NS)
		return tw__bad(-ERANGE, call, "delay_ns");
	if (!service)
		return tw__refuse(-EINVAL, call, "a delay needs a scheduler with a service");
	if (!tw__beyond_range(service, now_ns + (delay_ns ? delay_ns : 1000000000)))
		return 0; /* 0: a frame at most */
	return delay_ns ? tw__bad(-ERANGE, call, "delay_ns")
			: tw__refuse(-ERANGE, call, "the clock is at the end of its range");
}

/* An idle queue runs what it has now. */
int tw_action_schedule(tw_action *action, void *state, uint64_t delay_ns)
{
	int r = TW__ACTION_CHECK(action), failure = 0;
	if (r)
		return r;
	tw_action_scheduler *scheduler = action->scheduler;
	void *context = tw__context_capture();
	uint64_t now_ns = tw__actions_now(scheduler);
	r = range_check(__func__, scheduler, delay_ns, now_ns);
	tw__object_lock(&scheduler->object);
	if (!r)
		r = arm(action, state, delay_ns, context, now_ns);
	scheduler->stats.refused += r && r != -EINVAL;
	if (!r && scheduler->config.kind == TW_ACTION_KIND_QUEUE && !scheduler->flushing)
		failure = tw__actions_flush(scheduler);
	tw__actions_unlock(scheduler, 0);
	return r ? r : failure;
}

/* ------------------------------------------------------------------- immediates */

/* At least half of the table is free: it grows with how many wait at a time. */
static bool make_room(tw_action_scheduler *scheduler)
{
	uint64_t former = scheduler->room, room = former ? 2 * former : 16;
	struct tw_action **waiting = scheduler->immediates;
	if (2 * scheduler->waiting < former)
		return true;
	/* NOLINTNEXTLINE(bugprone-sizeof-expression): pointers */
	struct tw_action **table = tw__alloc_zeroed(room, sizeof(*table));
	if (!table)
		return false;
	scheduler->immediates = table;
	scheduler->room = room;
	for (uint64_t i = 0; i < former; i++)
		if (waiting[i]) /* two that differ in the former low bits differ in these */
			*tw__immediate_at(scheduler, waiting[i]->immediate_id) = waiting[i];
	tw__free(waiting);
	return true;
}

static int call_immediate(struct tw_action *action, void *arg)
{
	action->immediate(arg);
	return 0;
}

static int immediate_check(const char *call, const tw_action_scheduler *scheduler)
{
	int r = TW__ACTIONS_CHECK(call, scheduler);
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
	bool frame = scheduler->config.kind == TW_ACTION_KIND_FRAME;
	uint64_t now_ns = frame ? tw__actions_now(scheduler) : 0;
	r = range_check(__func__, scheduler, 0, now_ns);
	tw__object_lock(&scheduler->object);
	struct tw_action *action =
	    !r && make_room(scheduler) ? new_action(scheduler, call_immediate, NULL) : NULL;
	if (!r)
		r = action ? join_batch(action, now_ns) : -ENOMEM;
	if (!r) {
		do /* a place that is taken: an older one waits */
			action->immediate_id = ++scheduler->last_id;
		while (*tw__immediate_at(scheduler, action->immediate_id));
		*tw__immediate_at(scheduler, action->immediate_id) = action;
		scheduler->waiting++;
		action->immediate = fn;
		action->state = arg;
		action->context = context;
		if (out)
			out->id = action->immediate_id;
	} else {
		scheduler->stats.refused++;
		if (action)
			tw__action_disown(action);
	}
	tw__actions_unlock(scheduler, 0);
	return r;
}

int tw_immediate_cancel(tw_action_scheduler *scheduler, tw_immediate immediate)
{
	int r = immediate_check(__func__, scheduler);
	if (r)
		return r;
	tw__object_lock(&scheduler->object);
	struct tw_action *action =
	    scheduler->room ? *tw__immediate_at(scheduler, immediate.id) : NULL;
	if (action && action->immediate_id != immediate.id)
		action = NULL;
	if (action && tw__action_close(action, TW_FATE_CANCELLED))
		tw__action_release(action);
	tw__actions_unlock(scheduler, 0);
	return action ? TW_CANCELLED : TW_GONE;
}
