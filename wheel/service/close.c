/*
 * Closing: refuse new work, end the pending work, stop.
 *
 *   1. The driver ends ACCEPTING and passes a heavy barrier: each schedule either was pushed before
 *      (the driver finds it) or sees that and takes its timer back (schedule.c).
 *   2. DROP: the closing thread ends every armed timer it finds in the control words. RUN: the
 *      driver hands over all it meets, deadline or not. DRAIN: time goes on until none is left but
 *      background timers, or the timeout comes. Both end as DROP.
 *   3. Wait until executors have used up all tickets and no release is under way; stop the tick
 *      thread, then the pool.
 *
 * The control words are the truth throughout: "nothing pending" is counted from them. With a manual
 * drive the thread that closes is the driver.
 *
 * Of several calls of close one at a time works (close_owner.h). Each call may begin any step
 * again.
 *
 * A close that does not wait leaves callbacks behind. Lest one of them arm its timer again after
 * the answer (it had looked at the gate before), its word is BARRED. The mode is DROP from then on,
 * so the driver hands nothing over.
 *
 * Membarrier that was granted at creation and is refused now: close answers -ENOTSUP before it
 * changes anything. tw_service_destroy needs no barrier: its caller has seen to it that all other
 * calls happened before.
 */
#include <time.h>

#include "wheel/service/close_owner.h"
#include "wheel/service/close_words.h"
#include "wheel/driver/poll.h"
#include "wheel/timer/schedule.h"
#include "wheel/run/work.h"
#include "wheel/core/frame.h"
#include "wheel/group/completion.h"
#include "wheel/service/close.h"
#include "wheel/timer/end.h"
#include "wheel/run/batch.h"

enum {
	PUSH_NS = 20000,
	LEAVE_NS = 100000,
	POLL_NS = 1000000,
	SLICE_NS = 5000000,
	DRAIN_GRACE_NS = 1000000000,
	OWN_GRACE_NS = 100000000
};

/* What a step of a close comes to, beside 0 (done) and an error. */
enum { STEP_ASIDE = 1 };

static uint64_t now(void)
{
	return tw_clock_now(tw_clock_monotonic());
}

static uint64_t after(uint64_t instant_ns, uint64_t span_ns)
{
	return span_ns < UINT64_MAX - instant_ns ? instant_ns + span_ns : UINT64_MAX;
}

/* --------------------------------------------------------------------- turns */

/*
 * The driver's lock of a manual drive, in which another thread may be. Tried again and again where
 * there is a deadline: that is rare, and ThreadSanitizer (of gcc 12 and clang 14) does not see the
 * timed lock on the monotonic clock.
 */
static bool lock_driving(tw_service *service, uint64_t deadline_ns)
{
	if (deadline_ns == UINT64_MAX)
		return pthread_mutex_lock(&service->driving) == 0;
	while (pthread_mutex_trylock(&service->driving)) {
		if (now() >= deadline_ns)
			return false;
		nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
	}
	return true;
}

/*
 * A poll by the thread that closes, in a manual drive. False: another thread drives, and did not
 * stop by the deadline.
 */
static bool drive_by_hand(tw_service *service, uint64_t deadline_ns)
{
	if (!lock_driving(service, deadline_ns))
		return false;
	uint32_t mode = tw_load_acquire(&service->phase.closing);
	if (tw_load_relaxed(&service->phase.closed) != mode)
		tw__driver_publish_closed(service, mode);
	struct tw__local *local = tw__local_of(service);
	if (local)
		tw__poll(service, local, SIZE_MAX);
	pthread_mutex_unlock(&service->driving);
	return true;
}

/* A whole turn in the mode that is asked for now, or a stricter one. */
static int close_poll(const struct tw__close_call *c)
{
	bool done = c->service->threaded ? tw__driver_await_poll(c->service, c->own_until_ns)
					 : drive_by_hand(c->service, c->deadline_ns);
	return done ? 0 : -ETIMEDOUT;
}

/* -------------------------------------------------------------------- waits */

/*
 * Waits a moment: for a run that someone waits for, a waiter, or time to pass. Looking at all words
 * costs; the more it costs, the less often it is done.
 */
static int wait_a_moment(const struct tw__close_call *c, uint64_t looking_ns, uint64_t deadline_ns)
{
	tw_service *service = c->service;
	uint64_t now_ns = now();
	if (now_ns >= deadline_ns)
		return -ETIMEDOUT;
	uint32_t bell = tw_load_acquire(&service->finish_bell); /* RUN5, CLOSE2 */
	if (tw__close_must_yield(c))
		return STEP_ASIDE;
	tw__futex_wait(&service->finish_bell, bell,
		       tw__earlier(now_ns + POLL_NS + 8 * looking_ns, deadline_ns));
	return 0;
}

/*
 * RUN and DRAIN: polls until nothing is armed. Another call may have asked for a stricter mode and
 * timed out. That mode holds, and the driver submits nothing any more, so this call begins again.
 */
static int run_out(const struct tw__close_call *c, uint32_t mode, uint64_t deadline_ns)
{
	for (;;) {
		if (tw__close_mode(c) != mode)
			return STEP_ASIDE;
		uint64_t before_ns = now();
		bool any = mode == TW__CLOSING_DRAIN ? tw__close_any(c, tw__close_holds_up)
						     : tw__close_any(c, tw__close_armed);
		if (!any)
			return 0;
		int r = wait_a_moment(c, now() - before_ns, deadline_ns);
		bool by_itself = mode == TW__CLOSING_DRAIN && c->service->threaded;
		if (!r && !by_itself)
			r = close_poll(c);
		if (r)
			return r;
	}
}

static int await_batches(const struct tw__close_call *c)
{
	_Atomic uint32_t *at = &c->service->submitted->batches_out;
	uint32_t out = tw_or_seq_cst(at, TW__CLOSE_WAITS) | TW__CLOSE_WAITS; /* RUN4 */
	while (out != TW__CLOSE_WAITS) {
		tw__groups_complete(c->service); /* a callback may wait for one */
		uint64_t now_ns = now();
		if (now_ns >= c->deadline_ns)
			return -ETIMEDOUT;
		if (tw__close_must_yield(c))
			return STEP_ASIDE;
		tw__futex_wait(at, out, tw__earlier(now_ns + SLICE_NS, c->deadline_ns));
		out = tw_load_acquire(at); /* RUN4 */
	}
	return 0;
}

/* ------------------------------------------------------------- the end of all */

/*
 * RUN and DRAIN: all have started, but what a drain whose time is up leaves. From then on the
 * driver hands nothing over: a schedule that looked at the gate long ago may still push, and take
 * its timer back only later; if that were handed over between close's last looks, at the words and
 * at the batches, its run would begin after the answer.
 */
static int run_the_last(const struct tw__close_call *c, uint32_t mode)
{
	int r = run_out(c, mode, mode == TW__CLOSING_DRAIN ? c->drain_until_ns : c->deadline_ns);
	if (mode == TW__CLOSING_DRAIN && r == -ETIMEDOUT)
		r = 0;
	if (r)
		return r;
	tw__close_demand(c->service, TW__CLOSING_DROP);
	return close_poll(c);
}

/* Nothing is armed any more; what was, has started or is dropped. */
static int empty(const struct tw__close_call *c)
{
	int r = 0;
	uint32_t mode = tw__close_mode(c);
	if (tw__close_must_yield(c))
		return STEP_ASIDE; /* the mode may be theirs: it is for them to carry out */
	if (mode != TW__CLOSING_DROP)
		r = run_the_last(c, mode);
	if (!r)
		tw__close_any(c, tw__close_drop);
	return r;
}

/* The end of a close that does not wait. */
static int close_leave(const struct tw__close_call *c)
{
	tw__close_demand(c->service, TW__CLOSING_DROP);
	int r = close_poll(c);
	if (!r)
		tw__close_any(c, tw__close_drop_or_bar);
	return r;
}

/*
 * Callbacks, releases and completions have returned, and left nothing behind. Releases that run on
 * threads which cancelled are rare and short: looked at now and then. Completions that the executor
 * has not called are called here.
 */
static int come_to_rest(const struct tw__close_call *c)
{
	int r = await_batches(c);
	while (!r && (tw__close_any(c, tw__close_releasing) || !tw__groups_complete(c->service)))
		r = wait_a_moment(c, 0, c->deadline_ns);
	return r ? r : close_poll(c);
}

/*
 * A run that was under way may have armed its timer again, if it looked at the gate before it was
 * closed.
 */
static bool is_at_rest(const struct tw__close_call *c)
{
	return !tw__close_any(c, tw__close_waits) &&
	       tw_load_acquire(&c->service->submitted->batches_out) == TW__CLOSE_WAITS &&
	       tw__groups_forbid_completions(c->service);
}

static int close_finish(const struct tw__close_call *c)
{
	bool waits = !(c->options->flags & TW_CLOSE_FLAG_NO_WAIT), done = false;
	int r = close_poll(c);
	while (!r && !done) {
		r = empty(c);
		if (!r && waits)
			r = come_to_rest(c);
		done = !r && (!waits || is_at_rest(c));
	}
	return r || waits ? r : close_leave(c);
}

/* Work has run whose pusher is still looking whether to ring (work.h, WORK4): a moment. */
static bool await_pushers(const struct tw__close_call *c)
{
	while (!tw__works_are_pushed(c->service)) {
		if (now() >= c->own_until_ns)
			return false;
		nanosleep(&(struct timespec){.tv_nsec = PUSH_NS}, NULL);
	}
	return true;
}

static int close_stop(const struct tw__close_call *c, void (*quiet)(tw_service *))
{
	tw_service *service = c->service;
	if (!await_pushers(c))
		return -ETIMEDOUT;
	if (service->threaded && !tw__driver_stop(service, c->own_until_ns))
		return -ETIMEDOUT;
	quiet(service);
	service->close_owner->closed = true;
	return 0;
}

/*
 * The time is up, and the driver may be inside a callback: what may not run any more ends without
 * it. A run that another call asked for goes on beyond the timeout of a drain.
 */
static void drop_in_time(const struct tw__close_call *c)
{
	bool runs =
	    c->options->mode == TW_CLOSE_RUN && !(c->options->flags & TW_CLOSE_FLAG_NO_WAIT);
	if (runs || tw__close_mode(c) == TW__CLOSING_DRAIN)
		tw__close_demand(c->service, TW__CLOSING_DROP);
	if (tw__close_mode(c) == TW__CLOSING_DROP)
		tw__close_any(c, tw__close_drop_or_bar);
}

/* With the lock. */
static int work(const struct tw__close_call *c, void (*quiet)(tw_service *))
{
	if (c->service->close_owner->closed)
		return 0;
	int r = close_finish(c);
	if (!r && !(c->options->flags & TW_CLOSE_FLAG_NO_WAIT))
		r = close_stop(c, quiet);
	return r;
}

/*
 * Strands and the like that have been destroyed while their work is out (work.h). They need the
 * driver as before, so nothing is closed yet; with a manual drive their work may wait for it. 0,
 * -EBUSY, -ETIMEDOUT; -EDEADLK: this thread is in the work of one of them.
 */
static int await_layers(const struct tw__close_call *c)
{
	tw_service *service = c->service;
	uint64_t until_ns = c->options->flags & TW_CLOSE_FLAG_NO_WAIT ? 0 : c->deadline_ns;
	int r;
	while ((r = tw__service_forbid_holds(service)) == -EAGAIN) {
		if (tw__inside_work(service))
			return -EDEADLK;
		if (!service->threaded && !pthread_mutex_trylock(&service->driving)) {
			tw__works_offer(service);
			pthread_mutex_unlock(&service->driving);
		}
		if (tw__service_forbid_holds(service) == -EAGAIN && now() >= until_ns)
			return -ETIMEDOUT;
		nanosleep(&(struct timespec){.tv_nsec = LEAVE_NS}, NULL);
	}
	return r;
}

/* Whom would a drain wait for, on a clock that only the caller could advance? */
static bool close_would_wait_for_itself(const struct tw__close_call *c)
{
	uint32_t asked = tw__close_mode(c);
	return c->options->mode == TW_CLOSE_DRAIN && (asked == 0 || asked == TW__CLOSING_DRAIN) &&
	       !c->service->clock->ops->runs && tw__close_any(c, tw__close_pending);
}

static void set_deadlines(struct tw__close_call *c)
{
	c->drain_until_ns = c->deadline_ns = after(now(), c->options->timeout_ns);
	if (c->options->mode == TW_CLOSE_DRAIN)
		c->deadline_ns = after(c->deadline_ns, DRAIN_GRACE_NS);
	if (c->options->mode == TW_CLOSE_DRAIN && !c->service->clock->ops->runs)
		c->drain_until_ns = 0; /* nobody need advance the clock */
	uint64_t own_ns = after(now(), OWN_GRACE_NS);
	c->own_until_ns = own_ns > c->deadline_ns ? own_ns : c->deadline_ns;
}

int tw__core_close(tw_service *service, const struct tw_close_options *options,
		   void (*quiet)(tw_service *), bool alone)
{
	struct tw__close_call c = {.service = service, .options = options, .alone = alone};
	if (tw__inside(service) || close_would_wait_for_itself(&c))
		return -EDEADLK;
	if (!alone && !tw_load_acquire(&service->phase.closed) && !tw__gate_barrier(&service->gate))
		return -ENOTSUP;
	set_deadlines(&c);
	int r = await_layers(&c);
	if (r)
		return r;
	r = STEP_ASIDE;
	for (bool first = true; r == STEP_ASIDE; first = false) {
		if (tw__close_enter(&c, first)) {
			r = -ETIMEDOUT;
			break;
		}
		r = work(&c, quiet);
		tw__close_leave(&c);
	}
	if (r == -ETIMEDOUT)
		drop_in_time(&c);
	return r;
}
