/*
 * Which listeners are called when the limiter is idle.
 *
 * One thread tells at a time, in the order in which listeners came. What comes meanwhile, also from
 * a listener, is handled by that thread when the listener has returned: so listeners that listen
 * again pile up no stack.
 */

#include "executor/limiter/idle.h"
#include "executor/limiter/inbox.h"
#include "executor/limiter/settle.h"
#include "executor/limiter/tell.h"

static bool any_due(const struct tw_limiter *l)
{
	return l->idles.first && l->idles.first->due;
}

static struct tw__listener *take_first(struct tw_limiter *l)
{
	struct tw__listener *first = l->idles.first;
	if (!(l->idles.first = first->next))
		l->idles.end = &l->idles.first;
	return first;
}

/* All listeners that wait for the next idle are called for this one, and get its results. */
static void listeners_due(struct tw_limiter *l)
{
	for (struct tw__listener *listener = l->idles.first; listener; listener = listener->next) {
		if (listener->due)
			continue;
		listener->due = true;
		listener->results = l->results;
		if (l->results)
			l->results->refs++;
	}
}

void tw__idle_reached(struct tw_limiter *l)
{
	TW_ASSERT_LOCKED(&l->lock);
	l->idles.count++;
	if (l->results)
		l->results->delivered = true;
	listeners_due(l);
}

static void tell_one(struct tw_limiter *l, struct tw__listener *listener)
{
	struct tw__limiter_call call;
	struct tw__results *results = listener->results;
	pthread_mutex_unlock(&l->lock);
	tw__limiter_call_begin(&call, l, NULL);
	void *former = tw__context_enter(listener->context);
	tw__limiter_call_show(&call, TW__NAMED_BY(listener->fn), listener->arg, 0);
	listener->fn(listener->arg, results ? results->items : NULL, results ? results->n : 0);
	tw__context_leave(former);
	tw__limiter_call_end(&call);
	free(listener);
	tw__limiter_relock(l);
	tw__results_put(results);
}

void tw__idle_tell(struct tw_limiter *l)
{
	TW_ASSERT_LOCKED(&l->lock);
	if (l->idles.telling)
		return; /* the thread that notifies goes on with these */
	l->idles.telling = true;
	while (l->idles.told != l->idles.count || any_due(l)) {
		uint64_t idles = l->idles.count;
		if (l->idles.told != idles)
			tw__limiter_tell_event(
			    l, &(struct tw_limiter_event){.kind = TW_LIMITER_EVENT_IDLE});
		while (any_due(l))
			tell_one(l, take_first(l));
		l->idles.told = idles;
	}
	l->idles.telling = false;
	tw__bell_ring(&l->ends.quiet);
}

struct tw__listener *tw__listener_make(tw_idle_fn *fn, void *arg)
{
	struct tw__listener *listener = malloc(sizeof *listener);
	if (listener)
		*listener =
		    (struct tw__listener){.fn = fn, .arg = arg, .context = tw__context_capture()};
	return listener;
}

void tw__listener_add(struct tw_limiter *l, struct tw__listener *listener,
		      struct tw__limiter_deferred *deferred)
{
	TW_ASSERT_LOCKED(&l->lock);
	*l->idles.end = listener;
	l->idles.end = &listener->next;
	if (l->ends.unfinished != 0)
		return;
	listeners_due(l);
	deferred->idle = true;
}

int tw_limiter_on_idle(tw_limiter *l, tw_idle_fn *fn, void *arg)
{
	struct tw__limiter_deferred deferred;
	int r = fn ? TW__CHECK(l, "limiter") : tw__invalid("fn is NULL");
	if (r)
		return r;
	struct tw__listener *listener = tw__listener_make(fn, arg);
	if (!listener)
		return -ENOMEM;
	tw__limiter_lock(l, &deferred);
	tw__listener_add(l, listener, &deferred);
	tw__limiter_unlock(l, &deferred);
	return 0;
}
