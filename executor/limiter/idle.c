/* The limiter's events, its results, and its idle listeners. Calls lock.c. */
#include <string.h>

#include "executor/limiter/internal.h"
#include "mpsc/base/reserve.h"

/* ------------------------------------------------------------------ results */

struct tw_job_result tw__result_of(const struct tw__job *job)
{
	return (struct tw_job_result){.id = job->id,
				      .status = (enum tw_job_status)job->status,
				      .error = job->error,
				      .value = job->value,
				      .attempts = job->attempts,
				      .queued_ns = job->queued_ns,
				      .run_ns = job->run_ns};
}

static void results_put(struct tw__results *results)
{
	if (results && --results->refs == 0)
		tw__free(results);
}

/* Results that were delivered belong to their listeners. */
int tw__results_reserve(struct tw_limiter *l)
{
	struct tw__results *old = l->results;
	size_t n = old && !old->delivered ? old->n : 0;
	size_t needed = n + (size_t)(l->counters.added - l->counters.settled) + 1;
	if (old && !old->delivered && needed <= old->room)
		return 0;
	size_t room = needed < 16 ? 16 : 2 * needed;
	struct tw__results *results = tw__alloc(sizeof *results + room * sizeof *results->items);
	if (!results)
		return -ENOMEM;
	*results = (struct tw__results){.refs = 1, .room = room, .n = n};
	if (n)
		memcpy(results->items, old->items, n * sizeof *old->items);
	results_put(old);
	l->results = results;
	return 0;
}

/* ---------------------------------------------------------------------- idle */

void tw__tell_event(struct tw_limiter *l, const struct tw__job *job,
		    const struct tw_limiter_event *event)
{
	struct tw__inside inside;
	tw__inside_begin(&inside, &l->object, job, TW__NAMED_BY(l->config.event),
			 l->config.event_arg, NULL, NULL);
	l->config.event(l->config.event_arg, event);
	tw__inside_end(&inside);
}

void tw__listener_is_due(struct tw_limiter *l, struct tw__listener *listener)
{
	listener->results = l->results;
	if (l->results)
		l->results->refs++;
	tw__line_append(&l->idles.due, tw__in_line_link(&listener->place));
}

void tw__idle_reached(struct tw_limiter *l)
{
	struct tw__idles *i = &l->idles;
	i->reached++;
	i->event_due = l->config.event != NULL;
	if (l->results)
		l->results->delivered = true;
	while (i->waiting.first)
		tw__listener_is_due(l, tw__listener_of(tw__line_pop(&i->waiting)));
}

/* Calls the event, or a listener, without the lock. */
static void tell_one(struct tw_limiter *l)
{
	struct tw__inside inside;
	bool is_event = l->idles.event_due;
	struct tw__listener *listener =
	    is_event ? NULL : tw__listener_of(tw__line_pop(&l->idles.due));
	struct tw__results *results = is_event ? NULL : listener->results;
	l->idles.event_due = false;
	tw__limiter_leave(l, 0);
	if (is_event) {
		tw__tell_event(l, NULL, &(struct tw_limiter_event){.kind = TW_LIMITER_EVENT_IDLE});
	} else {
		tw__inside_begin(&inside, &l->object, NULL, TW__NAMED_BY(listener->fn),
				 listener->arg, NULL, listener->context);
		listener->fn(listener->arg, results ? results->items : NULL,
			     results ? results->n : 0);
		tw__inside_end(&inside);
		tw__free(listener);
	}
	tw__limiter_lock(l);
	results_put(results);
}

/*
 * One thread at a time calls listeners, in order, also those that are added meanwhile: so listeners
 * that add listeners use no more stack. After CALLS_IN_A_ROW calls the executor goes on.
 */
void tw__tell_idle(struct tw_limiter *l)
{
	enum { CALLS_IN_A_ROW = 64 };
	struct tw__idles *i = &l->idles;
	if (i->telling)
		return;
	i->telling = true;
	for (unsigned left = CALLS_IN_A_ROW; left && (i->event_due || i->due.first); left--)
		tell_one(l);
	i->telling = false;
	l->tells_idle = i->event_due || i->due.first;
	if (!l->tells_idle)
		i->told = i->reached;
	tw__object_ring(&l->object);
}
