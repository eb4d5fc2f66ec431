/* The flusher: runs what is due, a batch at a time. Calls end.c and executor/base. */

#include "executor/action/internal.h"
#include "mpsc/base/process.h"

void tw__actions_begin(tw_action_scheduler *scheduler)
{
	TW_ASSERT_TINY_LOCKED(&scheduler->object.lock);
	TW_ASSERT(!scheduler->flushing);
	scheduler->flushing = true;
	scheduler->flusher = pthread_self();
}

/* --------------------------------------------------------------------------- a run */

/*
 * Runs a detached action. Returns what the work returned. The run's reference is the caller's
 * afterwards. *ended: the caller calls tw__action_release.
 */
static int run_action(struct tw_action *action, void *state, void *context, bool *ended)
{
	tw_action_scheduler *scheduler = action->scheduler;
	struct tw__object *object = &scheduler->object;
	struct tw__inside inside;
	int failure = 0;
	action->running = true;
	action->ran_delay_ns = action->delay_ns;
	action->ran_due_ns = action->due_ns;
	action->references++;
	if (!action->fn)
		tw__immediate_gone(action);
	scheduler->stats.runs++;
	tw__object_unlock(object);
	tw__inside_begin(&inside, object, action,
			 action->fn ? TW__NAMED_BY(action->fn) : action->immediate, state, NULL,
			 context);
	if (action->fn)
		failure = action->fn(action, state);
	else
		action->immediate(state);
	tw__inside_end(&inside);
	tw__actions_lock(scheduler);
	action->running = false;
	scheduler->stats.failures += failure != 0;
	*ended = action->closed;
	if (*ended)
		tw__action_ended(action);
	else
		/* planted: failed_goes_on */
		*ended = failure && tw__action_close(action, TW_FATE_FIRED);
	tw__object_ring(object);
	return failure;
}

/* Calls `failed`. action NULL: an immediate. The lock is held; it is released meanwhile. */
static void tell(tw_action_scheduler *scheduler, struct tw_action *action, int failure,
		 size_t closed)
{
	tw_action_failed_fn *failed = scheduler->config.failed;
	void *arg = scheduler->config.failed_arg;
	struct tw__inside inside;
	if (!failed) {
		scheduler->stats.untold++;
		return;
	}
	tw__object_unlock(&scheduler->object);
	tw__inside_begin(&inside, &scheduler->object, NULL, TW__NAMED_BY(failed), arg, NULL,
			 tw__context_capture());
	failed(arg, action, failure, closed);
	tw__inside_end(&inside);
	tw__actions_lock(scheduler);
}

/*
 * Closes what is in the line now. Returns how many. Nothing that arrives while the releases are
 * called is closed with them.
 */
static size_t close_rest(tw_action_scheduler *scheduler, struct tw__line *line)
{
	struct tw__line closed;
	struct tw_action *action;
	size_t n = 0;
	tw__line_init(&closed);
	for (; (action = tw__action_of(line->first)); n++) {
		tw__action_close(action, TW_FATE_DROPPED); /* it waits, so it ends here */
		tw__line_append(&closed, tw__in_line_link(&action->place));
	}
	scheduler->stats.closed_by_failure += n;
	while (closed.first)
		tw__action_release(tw__action_of(tw__line_pop(&closed)));
	return n;
}

/* ------------------------------------------------------------------------ flushes */

static bool cancels_batch(const tw_action_scheduler *scheduler)
{
	return scheduler->config.flags & TW_ACTION_FLAG_CANCEL_BATCH;
}

/* A closed strand runs nothing that needs a timer. What needs none runs. */
static bool is_refused(const struct tw_action *action)
{
	const struct tw_action_scheduler_config *config = &action->scheduler->config;
	bool by_timer = action->delay_ns || config->kind == TW_ACTION_KIND_ASYNC ||
			(config->kind == TW_ACTION_KIND_FRAME && config->service);
	return by_timer && config->executor && tw__executor_is_closed(config->executor);
}

/* Runs the first of a line. told: `failed` is called for a failure. */
static int run_first(tw_action_scheduler *scheduler, struct tw__line *line, bool told)
{
	struct tw_action *action = tw__action_of(line->first);
	void *context = action->context;
	bool ended = false;
	int failure = 0;
	tw__action_leave(action);
	if (is_refused(action)) {
		scheduler->stats.refused++;
		action->references++;
		if (!action->fn)
			tw__immediate_gone(action);
		tell(scheduler, action->fn ? action : NULL, -ESHUTDOWN, 0);
	} else {
		failure = run_action(action, action->state, context, &ended);
	}
	if (failure) {
		size_t closed = 0;
		if (cancels_batch(scheduler))
			/* planted: closes_next_batch */
			closed = close_rest(scheduler, line);
		if (told)
			tell(scheduler, action, failure, closed);
	}
	if (ended)
		tw__action_release(action);
	tw__action_put(action);
	return failure;
}

/* At most `most` runs. */
static int flush(tw_action_scheduler *scheduler, struct tw__line *line, bool told, size_t most)
{
	int first = 0;
	TW_ASSERT_TINY_LOCKED(&scheduler->object.lock);
	scheduler->stats.flushes += line->first != 0;
	while (most-- && line->first && !(first && cancels_batch(scheduler))) {
		int failure = run_first(scheduler, line, told || first);
		first = first ? first : failure;
	}
	return first;
}

int tw__actions_flush_due(tw_action_scheduler *scheduler, bool told, size_t most)
{
	return flush(scheduler, &scheduler->due, told, most);
}

/* What joins from now on belongs to the next batch: the other one, which the last flush emptied. */
static int flush_batch(tw_action_scheduler *scheduler, bool told)
{
	struct tw__line *batch = scheduler->open;
	scheduler->open = &scheduler->batches[batch == scheduler->batches];
	TW_ASSERT(!scheduler->open->first);
	/* planted: turn_takes_new */
	scheduler->requested = scheduler->turn = false;
	return flush(scheduler, batch, told, SIZE_MAX);
}

/* The first that came begins a flush. */
static void begin_flush(tw_action_scheduler *scheduler)
{
	struct tw_action *action = tw__action_of(scheduler->came.first);
	tw__action_leave(action);
	tw__action_join(action, &scheduler->due);
}

static bool anything_left(const tw_action_scheduler *scheduler)
{
	return scheduler->turn || scheduler->due.first || scheduler->came.first;
}

/*
 * How much a thread serves for others, who may bring actions as fast as it runs them. Without a
 * service there is no executor that could go on.
 */
enum { MOST_SERVED = 64 };

void tw__actions_serve(tw_action_scheduler *scheduler)
{
	size_t served = 0, most = tw__actions_service(scheduler) ? MOST_SERVED : SIZE_MAX;
	TW_ASSERT(tw__actions_mine(scheduler));
	while (anything_left(scheduler) && served < most) {
		uint64_t runs = scheduler->stats.runs;
		if (scheduler->turn) {
			flush_batch(scheduler, true);
		} else {
			if (!scheduler->due.first)
				begin_flush(scheduler);
			tw__actions_flush_due(scheduler, true, most - served);
		}
		/* a turn that finds nothing counts, too */
		served += scheduler->stats.runs > runs ? scheduler->stats.runs - runs : 1;
	}
	scheduler->flushing = false;
	if (anything_left(scheduler))
		tw__actions_ask_for_work(scheduler);
	tw__object_ring(&scheduler->object);
}

/* For ASAP it also brings the open batch's turn, if that is wanted still. */
void tw__actions_work(struct tw__work *work)
{
	tw_action_scheduler *scheduler = TW__OWNER(tw_action_scheduler, object.work, work);
	tw__actions_lock(scheduler);
	scheduler->work_out = false;
	if (scheduler->config.kind == TW_ACTION_KIND_ASAP && scheduler->requested &&
	    !(scheduler->config.flags & TW_ACTION_FLAG_BY_CALLER))
		scheduler->turn = true;
	if (!scheduler->flushing) {
		tw__actions_begin(scheduler);
		tw__actions_serve(scheduler);
	}
	tw__actions_unlock(scheduler, 1);
}

/* ----------------------------------------------------------------- driven by calls */

/* The lock is held. An action that is not armed runs under `context`. */
static int run_here(struct tw_action *action, void *state, void *context)
{
	tw_action_scheduler *scheduler = action->scheduler;
	bool nested = tw__actions_mine(scheduler), ended;
	if (action->closed)
		return -ECANCELED;
	if (action->running || (scheduler->flushing && !nested))
		return -EBUSY;
	if (action->line || action->timed)
		context = action->context;
	if (!nested)
		tw__actions_begin(scheduler);
	tw__action_detach(action);
	action->due_ns = tw__actions_now(scheduler);
	int failure = run_action(action, state, context, &ended);
	if (ended)
		tw__action_release(action);
	tw__action_put(action);
	if (!nested)
		tw__actions_serve(scheduler);
	return failure;
}

int tw_action_run(tw_action *action, void *state)
{
	int r = TW__ACTION_CHECK(action);
	if (r)
		return r;
	tw_action_scheduler *scheduler = action->scheduler;
	void *context = tw__context_capture();
	tw__actions_lock(scheduler);
	r = run_here(action, state, context);
	tw__actions_unlock(scheduler, 0);
	return r;
}

/* Runs one turn, when other threads have left the scheduler. */
int tw_action_scheduler_flush(tw_action_scheduler *scheduler)
{
	TW__UNCANCELLED;
	int r = TW__ACTIONS_CHECK(__func__, scheduler);
	if (r)
		return r;
	if (!(scheduler->config.flags & TW_ACTION_FLAG_BY_CALLER))
		return tw__invalid("the scheduler's flags must have TW_ACTION_FLAG_BY_CALLER");
	tw__actions_lock(scheduler);
	r = tw__actions_mine(scheduler) ? -EBUSY : 0;
	while (!r && scheduler->flushing)
		tw__object_await(&scheduler->object, UINT64_MAX);
	if (!r) {
		tw__actions_begin(scheduler);
		r = flush_batch(scheduler, false);
		tw__actions_serve(scheduler);
	}
	tw__actions_unlock(scheduler, 0);
	return r;
}
