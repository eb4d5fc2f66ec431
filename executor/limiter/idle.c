/*
 * Which listeners are called when the limiter is idle.
 *
 * One thread tells at a time, in the order in which listeners came. What comes meanwhile, also from
 * a listener, is handled by that thread when the listener has returned: so listeners that listen
 * again pile up no stack. After CALLS_IN_A_ROW calls it leaves the rest to a piece of work on the
 * executor, which has the turn then. So a listener that listens again, and an event IDLE that
 * brings a job, hold no thread without limit.
 */

#include "executor/limiter/idle.h"
#include "executor/limiter/inbox.h"
#include "executor/limiter/settle.h"
#include "executor/limiter/tell.h"

enum { CALLS_IN_A_ROW = 64 };

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

/* The event, and then the listeners, of one idle after the other. False: there is more. */
static bool idle_tell_some(struct tw_limiter *l)
{
	struct tw__idles *i = &l->idles;
	for (unsigned calls = 0; calls < CALLS_IN_A_ROW; calls++) {
		bool is_begun = i->begun != i->told || i->told == i->count;
		if (is_begun && any_due(l)) {
			tell_one(l, take_first(l));
			continue;
		}
		i->told = i->begun;
		if (i->told == i->count)
			return true;
		i->begun = i->count;
		tw__limiter_tell_event(l,
				       &(struct tw_limiter_event){.kind = TW_LIMITER_EVENT_IDLE});
	}
	return false;
}

/* This thread is the one that tells. The limiter stays: the caller counts in out.calls. */
static void idle_go_on(struct tw_limiter *l)
{
	if (idle_tell_some(l)) {
		l->idles.telling = false;
		tw__bell_ring(&l->ends.quiet);
		return;
	}
	l->out.tellers++;
	pthread_mutex_unlock(&l->lock);
	tw__work_submit(&l->idles.work);
	tw__limiter_relock(l);
}

static void idle_work(struct tw__work *work)
{
	struct tw_limiter *l = TW__OWNER(struct tw_limiter, idles.work, work);
	struct tw__limiter_deferred deferred;
	tw__limiter_lock(l, &deferred);
	l->out.tellers--;
	l->out.calls++;
	idle_go_on(l);
	l->out.calls--;
	tw__limiter_unlock(l, &deferred);
}

void tw__idle_init(struct tw_limiter *l)
{
	l->idles.end = &l->idles.first;
	tw__work_init(&l->idles.work, l->service, l->base.executor, idle_work);
}

void tw__idle_tell(struct tw_limiter *l)
{
	TW_ASSERT_LOCKED(&l->lock);
	if (l->idles.telling)
		return; /* the thread that notifies goes on with these */
	l->idles.telling = true;
	idle_go_on(l);
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
