/* The flusher runs due actions and immediates, a batch at a time. Calls end.c and executor/base. */

#include "executor/action/internal.h"
#include "mpsc/base/process.h"

/* --------------------------------------------------------------------------- a run */

static void begin(tw_action_scheduler *scheduler)
{
	TW_ASSERT_TINY_LOCKED(&scheduler->object.lock);
	TW_ASSERT(!scheduler->flushing);
	scheduler->flushing = true;
	scheduler->flusher = pthread_self();
}

static struct tw_action *first_of(const struct tw__line *line)
{
	return line->first ? TW__OWNER(struct tw_action, place, line->first) : NULL;
}

/* Calls `failed`. The action is referenced. The lock is held; it is released meanwhile. */
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
	failed(arg, action->immediate ? NULL : action, failure, closed);
	tw__inside_end(&inside);
	tw__object_lock(&scheduler->object);
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
	for (; (action = first_of(line)); n++) {
		tw__action_close(action, TW_FATE_DROPPED); /* it waits, so it ends here */
		tw__line_append(&closed, tw__in_line_link(&action->place));
	}
	scheduler->stats.closed_by_failure += n;
	while ((action = first_of(&closed))) {
		tw__line_pop(&closed);
		tw__action_release(action);
	}
	return n;
}

/*
 * Runs a detached action, which has a reference for it. Returns what the work returned. A failure
 * closes the action, and the batch unless it is NULL. told: `failed` is called for it.
 */
static int run_action(struct tw_action *action, void *state, void *context, struct tw__line *batch,
		      bool told)
{
	tw_action_scheduler *scheduler = action->scheduler;
	struct tw__inside inside;
	action->running = true;
	action->thread = pthread_self();
	action->ran_delay_ns = action->delay_ns;
	action->ran_due_ns = action->due_ns;
	scheduler->stats.runs++;
	tw__object_unlock(&scheduler->object);
	tw__inside_begin(&inside, &scheduler->object, action,
			 action->immediate ? action->immediate : TW__NAMED_BY(action->fn), state,
			 NULL, context);
	int failure = action->fn(action, state);
	tw__inside_end(&inside);
	tw__object_lock(&scheduler->object);
	action->running = false;
	/* planted: failed_goes_on */
	bool ended = action->closed || (failure && tw__action_close(action, TW_FATE_FIRED));
	tw__object_ring(&scheduler->object);
	if (failure) {
		scheduler->stats.failures++;
		/* planted: closes_next_batch */
		size_t closed = batch ? close_rest(scheduler, batch) : 0;
		if (told)
			tell(scheduler, action, failure, closed);
	}
	if (ended)
		tw__action_release(action);
	tw__action_put(action);
	return failure;
}

/* ------------------------------------------------------------------------ flushes */

/* A closed strand runs nothing that needs a timer. What needs none runs. */
static bool is_refused(const struct tw_action *action)
{
	tw_executor *executor = action->scheduler->config.executor;
	return executor && tw__action_by_timer(action->scheduler, action->delay_ns) &&
	       tw__executor_is_closed(executor);
}

/* At most `most` runs. */
static int flush(tw_action_scheduler *scheduler, struct tw__line *line, bool told, size_t most)
{
	int first = 0;
	bool cancels = scheduler->config.flags & TW_ACTION_FLAG_CANCEL_BATCH;
	TW_ASSERT_TINY_LOCKED(&scheduler->object.lock);
	scheduler->stats.flushes += line->first != 0;
	while (most-- && line->first && !(first && cancels)) {
		struct tw_action *action = first_of(line);
		action->references++;
		tw__action_leave(action);
		if (is_refused(action)) {
			scheduler->stats.refused++;
			tell(scheduler, action, -ESHUTDOWN, 0);
			tw__action_put(action);
			continue;
		}
		int failure = run_action(action, action->state, action->context,
					 cancels ? line : NULL, told || first);
		first = first ? first : failure;
	}
	return first;
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

static bool anything_left(const tw_action_scheduler *scheduler)
{
	return scheduler->turn || scheduler->due.first || scheduler->came.first;
}

/*
 * The most that one thread runs: others may submit actions as fast as it runs them. Without a
 * service there is no executor that could go on.
 */
enum { MOST_SERVED = 64 };

static void serve(tw_action_scheduler *scheduler)
{
	size_t served = 0, most = scheduler->config.service ? MOST_SERVED : SIZE_MAX;
	TW_ASSERT(tw__actions_mine(scheduler));
	while (anything_left(scheduler) && served < most) {
		uint64_t runs = scheduler->stats.runs;
		if (scheduler->turn) {
			flush_batch(scheduler, true);
		} else {
			if (!scheduler->due.first) { /* the first that came begins a flush */
				struct tw_action *action = first_of(&scheduler->came);
				tw__action_leave(action);
				tw__action_join(action, &scheduler->due);
			}
			flush(scheduler, &scheduler->due, true, most - served);
		}
		/* a turn that finds nothing counts, too */
		served += scheduler->stats.runs > runs ? scheduler->stats.runs - runs : 1;
	}
	scheduler->flushing = false;
	if (anything_left(scheduler))
		tw__actions_ask_for_work(scheduler);
	tw__object_ring(&scheduler->object);
}

int tw__actions_flush(tw_action_scheduler *scheduler)
{
	begin(scheduler);
	int failure = flush(scheduler, &scheduler->due, false, SIZE_MAX);
	serve(scheduler);
	return failure;
}

/* For ASAP it also brings the open batch's turn, if that is wanted still. */
void tw__actions_work(struct tw__work *work)
{
	tw_action_scheduler *scheduler = TW__OWNER(tw_action_scheduler, object.work, work);
	tw__object_lock(&scheduler->object);
	tw__object_rest(&scheduler->object);
	tw__object_use(&scheduler->object);
	if (scheduler->config.kind == TW_ACTION_KIND_ASAP && scheduler->requested &&
	    !(scheduler->config.flags & TW_ACTION_FLAG_BY_CALLER))
		scheduler->turn = true;
	if (!scheduler->flushing) {
		begin(scheduler);
		serve(scheduler);
	}
	tw__actions_unlock(scheduler, 1);
}

/* ----------------------------------------------------------------- driven by calls */

/* The lock is held. An action that is not armed runs under `context`. */
static int run_here(struct tw_action *action, void *state, void *context)
{
	tw_action_scheduler *scheduler = action->scheduler;
	bool nested = tw__actions_mine(scheduler);
	if (action->closed)
		return -ECANCELED;
	if (action->running || (scheduler->flushing && !nested))
		return -EBUSY;
	if (action->line)
		context = action->context;
	if (!nested)
		begin(scheduler);
	action->references++;
	tw__action_detach(action);
	action->due_ns = tw__actions_now(scheduler);
	int failure = run_action(action, state, context, NULL, false);
	if (!nested)
		serve(scheduler);
	return failure;
}

int tw_action_run(tw_action *action, void *state)
{
	int r = TW__ACTION_CHECK(action);
	if (r)
		return r;
	tw_action_scheduler *scheduler = action->scheduler;
	void *context = tw__context_capture();
	tw__object_lock(&scheduler->object);
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
	tw__object_lock(&scheduler->object);
	r = tw__actions_mine(scheduler) ? -EBUSY : 0;
	while (!r && scheduler->flushing)
		tw__object_await(&scheduler->object, UINT64_MAX);
	if (!r) {
		begin(scheduler);
		r = flush_batch(scheduler, false);
		serve(scheduler);
	}
	tw__actions_unlock(scheduler, 0);
	return r;
}
