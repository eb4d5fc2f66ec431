/*
 * The flusher: runs what is due, a batch at a time; a failure ends the batch, and closes what is left of it.
 *
 * A run may fork. In the child the scheduler is not to be touched: each function here returns as soon as it notices.
 */
#include <errno.h>

#include "executor/action/internal.h"
#include "wheel/run/user_code.h"
#include "wheel/run/watchdog.h"

void tw__actions_begin(tw_action_scheduler *scheduler)
{
	scheduler->flushing = true;
	scheduler->flusher = pthread_self();
}

/* -------------------------------------------------------------------------- runs */

static int call(struct tw_action *action, void *state, void *context)
{
	struct tw__context_saved saved;
	int failure = 0;
	tw_service *service = action->scheduler->base.service;
	if (service)
		tw__running_hide(service);
	tw_fn *fn = action->fn ? TW__NAMED_BY(action->fn) : action->immediate;
	struct tw__run_level *level = tw__user_begin(service, TW_RUN_KIND_ACTION, fn, 0);
	tw__context_enter(context, &saved);
	if (action->fn)
		failure = action->fn(action, state);
	else
		action->immediate(state);
	tw__context_leave(&saved);
	tw__user_end(level);
	return failure;
}

static void end_run(struct tw_action *action, int failure)
{
	tw_action_scheduler *scheduler = action->scheduler;
	struct tw__rest rest = {0};
	action->running = false;
	if (failure) {
		scheduler->stats.failures++;
		tw__action_close(action, &rest);
		tw__actions_unlock(scheduler, &rest); /* it may have armed itself before it failed */
		tw__actions_lock(scheduler);
	}
	pthread_cond_broadcast(&scheduler->changed);
}

int tw__action_run(struct tw_action *action, void *state, void *context)
{
	tw_action_scheduler *scheduler = action->scheduler;
	struct tw__rest none = {0};
	action->running = true;
	action->run_delay_ns = action->delay_ns;
	action->run_due_ns = action->due_ns;
	action->pins++;
	if (!action->fn)
		tw__immediate_gone(action);
	scheduler->stats.runs++;
	tw__actions_unlock(scheduler, &none);
	int failure = call(action, state, context);
	if (tw__actions_forked(scheduler))
		return -EPERM;
	tw__context_release(context);
	tw__actions_lock(scheduler);
	end_run(action, failure);
	return failure;
}

static void unpin(struct tw_action *action)
{
	action->pins--;
	tw__action_put(action);
}

/* ------------------------------------------------------------------------ failure */

/* Closes what is left of a batch: of `due` all that is there now, of `batches` what has this number. How many. */
static size_t close_rest(tw_action_scheduler *scheduler, struct tw__action_list *list, uint64_t batch)
{
	struct tw__action_list closed = {0};
	struct tw__rest rest;
	struct tw_action *action;
	size_t n = 0;
	for (; (action = list->first) && (list == &scheduler->due || action->batch == batch); n++) {
		tw__action_unlink(list, action);
		tw__action_set_place(action, TW__ACTION_NOWHERE);
		action->pins++;
		action->closed = true;
		if (!action->fn)
			tw__immediate_gone(action);
		tw__action_append(&closed, action);
	}
	scheduler->stats.closed_by_failure += n;
	while ((action = closed.first)) {
		tw__action_unlink(&closed, action);
		rest = (struct tw__rest){.context = action->context};
		action->context = NULL;
		unpin(action);
		tw__actions_unlock(scheduler, &rest);
		tw__actions_lock(scheduler);
	}
	return n;
}

/* Nobody drives this flush who could be told by its return. */
static void tell(tw_action_scheduler *scheduler, struct tw_action *action, int failure, size_t closed)
{
	struct tw__rest none = {0};
	if (!scheduler->config.failed) {
		scheduler->stats.untold++;
		return;
	}
	tw__actions_unlock(scheduler, &none);
	scheduler->config.failed(scheduler->config.failed_arg, action, failure, closed);
	if (!tw__actions_forked(scheduler))
		tw__actions_lock(scheduler);
}

/* ------------------------------------------------------------------------ flushes */

static int run_first(tw_action_scheduler *scheduler, struct tw__action_list *list, uint64_t batch, bool told,
		     void gather(tw_action_scheduler *))
{
	struct tw_action *action = list->first;
	tw__action_unlink(list, action);
	tw__action_set_place(action, TW__ACTION_NOWHERE);
	void *context = action->context;
	action->context = NULL;
	int failure = tw__action_run(action, action->state, context);
	if (tw__actions_forked(scheduler))
		return -EPERM;
	if (failure) {
		if (gather)
			gather(scheduler);
		size_t closed = close_rest(scheduler, list, batch);
		if (told)
			tell(scheduler, action, failure, closed);
		if (tw__actions_forked(scheduler))
			return -EPERM;
	}
	unpin(action);
	return failure;
}

int tw__actions_flush_due(tw_action_scheduler *scheduler, bool told)
{
	int failure = 0;
	scheduler->stats.flushes += scheduler->due.first != NULL;
	while (!failure && scheduler->due.first)
		failure = run_first(scheduler, &scheduler->due, 0, told, NULL);
	return failure;
}

int tw__actions_run_one_due(tw_action_scheduler *scheduler, void gather(tw_action_scheduler *))
{
	return run_first(scheduler, &scheduler->due, 0, false, gather);
}

int tw__actions_flush_batch(tw_action_scheduler *scheduler, bool told)
{
	int failure = 0;
	uint64_t batch = scheduler->batch++; /* what comes from now on is of the next */
	scheduler->stats.flushes += scheduler->open_count != 0;
	scheduler->open_count = 0;
	scheduler->requested = scheduler->turn = false;
	while (!failure && scheduler->batches.first && scheduler->batches.first->batch == batch)
		failure = run_first(scheduler, &scheduler->batches, batch, told, NULL);
	return failure;
}

void tw__actions_serve(tw_action_scheduler *scheduler)
{
	while (!tw__actions_forked(scheduler) && (scheduler->turn || scheduler->due.first)) {
		if (scheduler->turn)
			tw__actions_flush_batch(scheduler, true);
		else
			tw__actions_flush_due(scheduler, true);
	}
	if (tw__actions_forked(scheduler))
		return;
	scheduler->flushing = false;
	pthread_cond_broadcast(&scheduler->changed);
}

void tw__actions_turn(tw_action_scheduler *scheduler)
{
	if (!scheduler->requested)
		return; /* all that it was for has been closed */
	scheduler->turn = true;
	if (scheduler->flushing)
		return;
	tw__actions_begin(scheduler);
	tw__actions_serve(scheduler);
}

/* ----------------------------------------------------------------- driven by calls */

static void release_unlocked(tw_action_scheduler *scheduler, void *context)
{
	struct tw__rest rest = {.context = context};
	tw__actions_unlock(scheduler, &rest);
	tw__actions_lock(scheduler);
}

/* The flusher's; pinned. Closed meanwhile, it does not run. */
static int run_pinned(struct tw_action *action, void *state, void *context)
{
	bool runs = !action->closed;
	int r = runs ? tw__action_run(action, state, context) : -ECANCELED;
	if (tw__actions_forked(action->scheduler))
		return -EPERM;
	if (!runs)
		release_unlocked(action->scheduler, context);
	action->pins -= runs;
	unpin(action);
	return r;
}

/* Makes ready for run_pinned. *context: this thread's, which is exchanged for the one that the action was armed under, if it was. */
static int begin_run(struct tw_action *action, bool nested, struct tw__rest *rest, void **context)
{
	tw_action_scheduler *scheduler = action->scheduler;
	if (action->closed)
		return -ECANCELED;
	if (action->running || (scheduler->flushing && !nested))
		return -EBUSY;
	if (action->place != TW__ACTION_NOWHERE) {
		rest->context = *context;
		*context = action->context;
		action->context = NULL;
	}
	if (!nested)
		tw__actions_begin(scheduler);
	action->pins++;
	tw__action_detach(action, rest);
	action->due_ns = tw__actions_now(scheduler);
	return 0;
}

int tw_action_run(tw_action *action, void *state)
{
	if (!action)
		return -EINVAL;
	tw_action_scheduler *scheduler = action->scheduler;
	if (tw__actions_forked(scheduler))
		return -EPERM;
	struct tw__rest rest = {0}, none = {0};
	void *context = tw__context_capture();
	tw__actions_lock(scheduler);
	bool nested = tw__actions_mine(scheduler);
	int r = begin_run(action, nested, &rest, &context);
	if (r)
		rest.context = context;
	tw__actions_unlock(scheduler, &rest);
	if (r)
		return r;
	tw__actions_lock(scheduler);
	r = run_pinned(action, state, context);
	if (!nested)
		tw__actions_serve(scheduler);
	tw__actions_unlock(scheduler, &none);
	return r;
}

/* One turn, when other threads have let go of the scheduler. */
static int flush_turn(tw_action_scheduler *scheduler)
{
	struct tw__rest none = {0};
	tw__actions_lock(scheduler);
	int r = tw__actions_mine(scheduler) ? -EBUSY : 0;
	while (!r && scheduler->flushing)
		pthread_cond_wait(&scheduler->changed, &scheduler->lock);
	if (!r) {
		tw__actions_begin(scheduler);
		r = tw__actions_flush_batch(scheduler, false);
		tw__actions_serve(scheduler);
	}
	tw__actions_unlock(scheduler, &none);
	return r;
}

int tw_action_flush(tw_action_scheduler *scheduler)
{
	if (!scheduler)
		return -EINVAL;
	if (tw__actions_forked(scheduler))
		return -EPERM;
	if (scheduler->config.kind == TW_ACTION_VIRTUAL)
		return tw__actions_flush_virtual(scheduler);
	return scheduler->config.flags & TW_ACTION_BY_CALLER ? flush_turn(scheduler) : -EINVAL;
}
