/*
 * The flusher: runs what is due, a batch at a time, and is the only thread that calls `failed`.
 *
 * A failure closes its action. With TW_ACTION_FLAG_CANCEL_BATCH it also ends the flush and closes
 * the rest of the batch.
 */

#include "mpsc/base/cancel.h"
#include "executor/action/flush.h"
#include "executor/action/close.h"
#include "executor/action/host.h"
#include "executor/action/arm.h"

void tw__actions_begin(tw_action_scheduler *scheduler)
{
	TW_ASSERT_LOCKED(&scheduler->lock);
	scheduler->flushing = true;
	scheduler->flusher = pthread_self();
}

/* -------------------------------------------------------------------------- runs */

static int action_call(struct tw_action *action, void *state, void *context)
{
	int failure = 0;
	tw_service *service = action->scheduler->base.service;
	if (service)
		tw__user_hide_callback(service);
	tw_fn *fn = action->fn ? TW__NAMED_BY(action->fn) : action->immediate;
	struct tw__run_record *shown = tw__user_begin(service, fn, state, NULL, 0);
	void *former = tw__context_enter(context);
	if (action->fn)
		failure = action->fn(action, state);
	else
		action->immediate(state);
	tw__context_leave(former);
	tw__user_end(shown);
	return failure;
}

/* Closed by its failure, or while it ran: the action has ended. True: its release follows. */
static bool end_run(struct tw_action *action, int failure)
{
	tw_action_scheduler *scheduler = action->scheduler;
	bool ended = action->closed;
	action->running = false;
	scheduler->stats.failures += failure != 0;
	if (ended)
		tw__action_ended(action);
	else
		/* planted: failed_goes_on */
		ended = failure && tw__action_close(action, TW_FATE_FIRED);
	tw__bell_ring(&scheduler->changed);
	return ended;
}

/*
 * Runs a detached action, on the flusher. Returns what the work returned. The
 * run's reference is the caller's afterwards. *ended: it has ended, and the caller calls
 * tw__action_release.
 */
static int action_run(struct tw_action *action, void *state, void *context, bool *ended)
{
	tw_action_scheduler *scheduler = action->scheduler;
	action->running = true;
	action->last = action->armed;
	action->references++;
	if (!action->fn)
		tw__immediate_gone(action);
	scheduler->stats.runs++;
	pthread_mutex_unlock(&scheduler->lock);
	int failure = action_call(action, state, context);
	tw__actions_lock(scheduler);
	*ended = end_run(action, failure);
	return failure;
}

/* ------------------------------------------------------------------------ failure */

/*
 * Calls `failed` for a failure that no call returns, or for an action that is refused. action NULL:
 * an immediate. The mutex is held; it is released meanwhile.
 */
static void action_flush_tell(tw_action_scheduler *scheduler, struct tw_action *action, int failure,
			      size_t closed)
{
	tw_action_failed_fn *failed = scheduler->config.failed;
	scheduler->stats.untold += !failed;
	pthread_mutex_unlock(&scheduler->lock);
	if (failed) {
		struct tw__run_record *shown =
		    tw__user_begin(scheduler->base.service, TW__NAMED_BY(failed),
				   scheduler->config.failed_arg, NULL, 0);
		failed(scheduler->config.failed_arg, action, failure, closed);
		tw__user_end(shown);
	}
	tw__actions_lock(scheduler);
}

/* Takes an action from its list for the flusher. Returns the context of its arming. */
static void *action_take(struct tw__action_list *list, struct tw_action *action)
{
	void *context = action->context;
	tw__action_unlink(list, action);
	tw__action_set_location(action, TW__ACTION_NOWHERE);
	action->context = NULL;
	return context;
}

/*
 * What a flush takes from, by the number of its batch: `batches`, and of `due` (number 0) all.
 */
static struct tw__action_list *list_of(tw_action_scheduler *scheduler, uint64_t batch)
{
	return batch ? &scheduler->batches : &scheduler->due;
}

/* NULL: nothing is left of the batch. */
static struct tw_action *first_of(tw_action_scheduler *scheduler, uint64_t batch)
{
	struct tw_action *first = list_of(scheduler, batch)->first;
	return first && (!batch || first->batch == batch) ? first : NULL;
}

/*
 * Closes the rest of a batch: of `due` all that is there now, of `batches` what has this number.
 * Returns how many. First all are closed under one hold of the mutex, so nothing that arrives
 * meanwhile is closed with them. Then their releases are called.
 */
static size_t close_rest(tw_action_scheduler *scheduler, uint64_t batch)
{
	struct tw__action_list closed = {0};
	struct tw_action *action;
	size_t n = 0;
	/* planted: closes_next_batch */
	for (; (action = first_of(scheduler, batch)); n++) {
		tw__action_close(action, TW_FATE_DROPPED); /* it waits, so it ends here */
		tw__action_append(&closed, action);
	}
	scheduler->stats.closed_by_failure += n;
	while ((action = closed.first)) {
		tw__action_unlink(&closed, action);
		tw__action_release(action);
	}
	return n;
}

/* ------------------------------------------------------------------------ flushes */

/* It does not run: its executor is a closed strand. */
static void tell_refusal(tw_action_scheduler *scheduler, struct tw_action *action)
{
	action_take(&scheduler->due, action);
	action->refused = false;
	action->references++;
	if (!action->fn)
		tw__immediate_gone(action);
	action_flush_tell(scheduler, action->fn ? action : NULL, -ESHUTDOWN, 0);
	tw__action_put(action);
}

/* The action has run, and is referenced. */
static void after_failure(struct tw_action *action, uint64_t batch, int failure, bool told)
{
	tw_action_scheduler *scheduler = action->scheduler;
	size_t closed = 0;
	if (tw__actions_cancel_batch(scheduler))
		closed = close_rest(scheduler, batch);
	if (told)
		action_flush_tell(scheduler, action, failure, closed);
}

/* Runs the first of a batch (0: of `due`). told: `failed` is called for a failure. */
static int run_first(tw_action_scheduler *scheduler, uint64_t batch, bool told)
{
	struct tw_action *action = first_of(scheduler, batch);
	bool ended = false;
	if (action->refused) {
		tell_refusal(scheduler, action);
		return 0;
	}
	void *context = action_take(list_of(scheduler, batch), action);
	int failure = action_run(action, action->state, context, &ended);
	if (failure)
		after_failure(action, batch, failure, told);
	if (ended)
		tw__action_release(action);
	tw__action_put(action);
	return failure;
}

/*
 * At most `most` runs. The flush returns its first failure; `failed` is called for each of the
 * others.
 */
static int flush(tw_action_scheduler *scheduler, uint64_t batch, bool told, size_t most)
{
	int first = 0;
	while (most-- && first_of(scheduler, batch) &&
	       !(first && tw__actions_cancel_batch(scheduler))) {
		int failure = run_first(scheduler, batch, told || first);
		first = first ? first : failure;
	}
	return first;
}

static int flush_due(tw_action_scheduler *scheduler, bool told, size_t most)
{
	scheduler->stats.flushes += scheduler->due.first != NULL;
	return flush(scheduler, 0, told, most);
}

int tw__actions_flush_due(tw_action_scheduler *scheduler, bool told)
{
	TW_ASSERT_LOCKED(&scheduler->lock);
	return flush_due(scheduler, told, SIZE_MAX);
}

int tw__actions_flush_batch(tw_action_scheduler *scheduler, bool told)
{
	TW_ASSERT_LOCKED(&scheduler->lock);
	/* an action that joins from now on belongs to the next batch */
	/* planted: turn_takes_new */
	uint64_t batch = scheduler->batch++;
	scheduler->stats.flushes += scheduler->open_count != 0;
	scheduler->open_count = 0;
	scheduler->requested = scheduler->turn = false;
	return flush(scheduler, batch, told, SIZE_MAX);
}

static bool anything_left(const tw_action_scheduler *scheduler)
{
	return scheduler->turn || scheduler->due.first;
}

/*
 * How much a thread serves for others: other threads may bring actions as fast as it runs them.
 * Without a service there is no executor that could go on, and no other thread that brings timers
 * or turns.
 */
enum { MOST_SERVED = 64 };

void tw__actions_serve(tw_action_scheduler *scheduler)
{
	TW_ASSERT_LOCKED(&scheduler->lock);
	size_t served = 0, most = scheduler->base.service ? MOST_SERVED : SIZE_MAX;
	while (anything_left(scheduler) && served < most) {
		uint64_t runs = scheduler->stats.runs;
		if (scheduler->turn)
			tw__actions_flush_batch(scheduler, true);
		else
			flush_due(scheduler, true, most - served);
		served += (size_t)(scheduler->stats.runs - runs) + 1;
	}
	scheduler->flushing = false;
	if (anything_left(scheduler))
		tw__actions_ask_for_work(scheduler);
	tw__bell_ring(&scheduler->changed);
}

void tw__actions_drive(tw_action_scheduler *scheduler)
{
	TW_ASSERT_LOCKED(&scheduler->lock);
	if (scheduler->flushing)
		return;
	tw__actions_begin(scheduler);
	tw__actions_serve(scheduler);
}

void tw__actions_turn(tw_action_scheduler *scheduler)
{
	TW_ASSERT_LOCKED(&scheduler->lock);
	if (!scheduler->requested)
		return; /* all that wanted the turn has been closed */
	scheduler->turn = true;
	tw__actions_drive(scheduler);
}

/* ----------------------------------------------------------------- driven by calls */

/*
 * The mutex is held. An armed action runs under the context of its arming, any other under
 * `context`.
 */
static int run_here(struct tw_action *action, void *state, void *context)
{
	tw_action_scheduler *scheduler = action->scheduler;
	bool nested = tw__actions_mine(scheduler), ended;
	if (action->closed)
		return -ECANCELED;
	if (action->running || (scheduler->flushing && !nested))
		return -EBUSY;
	bool armed = action->location != TW__ACTION_NOWHERE;
	context = armed ? action->context : context;
	if (!nested)
		tw__actions_begin(scheduler);
	tw__action_detach(action);
	action->armed.due_ns = tw__actions_now(scheduler);
	int failure = action_run(action, state, context, &ended);
	if (ended)
		tw__action_release(action);
	tw__action_put(action);
	if (!nested)
		tw__actions_serve(scheduler);
	return failure;
}

int tw_action_run(tw_action *action, void *state)
{
	int r = tw__action_check(action);
	if (r)
		return r;
	tw_action_scheduler *scheduler = action->scheduler;
	void *context = tw__context_capture();
	tw__actions_lock(scheduler);
	r = run_here(action, state, context);
	tw__actions_unlock(scheduler);
	return r;
}

/* Runs one turn, when other threads have left the scheduler. */
static int flush_turn(tw_action_scheduler *scheduler)
{
	tw__actions_lock(scheduler);
	int r = tw__actions_mine(scheduler) ? -EBUSY : 0;
	while (!r && scheduler->flushing)
		tw__bell_await(&scheduler->changed, &scheduler->lock, UINT64_MAX);
	if (!r) {
		tw__actions_begin(scheduler);
		r = tw__actions_flush_batch(scheduler, false);
		tw__actions_serve(scheduler);
	}
	tw__actions_unlock(scheduler);
	return r;
}

int tw_action_scheduler_flush(tw_action_scheduler *scheduler)
{
	TW__UNCANCELLED;
	int r = tw__actions_check(scheduler);
	if (r)
		return r;
	if (!(scheduler->config.flags & TW_ACTION_FLAG_BY_CALLER))
		return tw__invalid("the scheduler's flags must have TW_ACTION_FLAG_BY_CALLER");
	return flush_turn(scheduler);
}
