/*
 * Closing: refuses new work, ends the pending work, stops.
 *
 * A call works in rounds, until one finds nothing left:
 *
 *   1. The driver ends ACCEPTING and passes a heavy barrier: each schedule either was pushed before
 *      (the driver finds it) or sees that and takes its timer back (schedule.c).
 *   2. RUN: the driver hands over all it meets, deadline or not. DRAIN: time goes on until none is
 *      left but background timers. Then the mode is DROP, in the next round.
 *   3. DROP: this thread ends every armed timer that it finds in the control words.
 *   4. This thread waits until executors have used up all tickets, and no release is in progress.
 *
 * Then one call stops the tick thread and the pool.
 *
 * The control words are the truth throughout: "nothing pending" is counted from them. With a manual
 * drive the thread that closes is the driver.
 *
 * The mode only falls: DRAIN, RUN, DROP. It is one for all calls. Several calls work at the same
 * time, each on its own thread until its own timeout. Each step may be done twice. A call that
 * finds a lower mode than the one that its round began with begins another round.
 *
 * At its timeout each call lowers the mode to DROP. A drain has a second more, for its callbacks. A
 * call that is out of time leaves callbacks behind. One of them may have looked at the gate before
 * it was closed, and may arm its timer after the answer. So its word is BARRED.
 *
 * Membarrier that was granted at creation and is refused now: close answers -ENOTSUP before it
 * changes anything. tw_service_destroy needs no barrier: its caller has seen to it that all other
 * calls happened before.
 *
 * Pairing table
 *   CLOSE1  phase.end: CAS acq_rel (a call begins to drop), sub release (it has dropped) -> CAS
 *       acq_rel 0 to BEGUN: the releases of what calls drop come before any answer 0, and none
 *       comes later. Store release (DONE) -> load acquire: the threads have ended before another
 *       call answers 0.
 *   CLOSE2  phase.closing: CAS seq_cst, then finish_bell moves -> bell, then the mode, then sleep
 *       on the bell's value: no sleep misses a lower mode.
 */
#include "wheel/service/close.h"

#include <limits.h>
#include <time.h>

#include "wheel/core/frame.h"
#include "wheel/core/wake.h"
#include "wheel/driver/poll.h"
#include "wheel/run/batch.h"
#include "wheel/run/completion.h"
#include "wheel/run/work.h"
#include "wheel/timer/cancel.h"

enum {
	PUSH_NS = 20000,
	LEAVE_NS = 100000,
	POLL_NS = 1000000,
	SLICE_NS = 5000000,
	DRAIN_GRACE_NS = 1000000000,
	OWN_GRACE_NS = 100000000
};

/* What a round comes to, beside 0 (nothing is left; this call ends the threads) and an error. */
enum { ROUND_AGAIN = 1, ROUND_CLOSED };

/* One call of close. */
struct close_call {
	tw_service *service;
	bool drains;
	uint64_t until_ns;     /* the timeout */
	uint64_t deadline_ns;  /* no wait for callbacks goes on after it */
	uint64_t own_until_ns; /* nor one for the tick thread after this */
};

static uint64_t now(void)
{
	return tw_clock_now(tw_clock_monotonic());
}

static uint64_t after(uint64_t instant_ns, uint64_t span_ns)
{
	return span_ns < UINT64_MAX - instant_ns ? instant_ns + span_ns : UINT64_MAX;
}

/* 0: no call has asked for a mode yet. */
static uint32_t close_mode(const tw_service *service)
{
	return tw_load_acquire(&service->phase.closing); /* CLOSE2 */
}

/* Moves the mode from *seen to a lower one. False: *seen is what it is now. */
static bool lower(tw_service *service, uint32_t *seen, uint32_t mode)
{
	if (!tw_cas_seq_cst(&service->phase.closing, seen, mode)) /* CLOSE2 */
		return false;
	tw__ring_finish(service); /* CLOSE2 */
	if (service->threaded)
		tw__gate_ring(&service->gate);
	return true;
}

static void ask(tw_service *service, uint32_t mode)
{
	uint32_t seen = close_mode(service);
	while ((!seen || mode < seen) && !lower(service, &seen, mode)) {
	}
}

/* ---------------------------------------------------------- the control words */

/* A question or a step. `word` was read from the slot, which was in use. */
typedef bool close_word_fn(tw_service *service, uint32_t slot, uint64_t word);

/* Calls what() for each slot in use. True as soon as one call answers true. */
static bool any(tw_service *service, close_word_fn *what)
{
	struct tw__slots *slots = &service->slots;
	uint32_t end = tw_load_acquire(&slots->depot.fresh);
	for (uint32_t slot = 1; slot < end; slot++) {
		uint64_t word = tw_load_acquire(&slots->words[slot]);
		if (tw__word_state(word) != TW__FREE && what(service, slot, word))
			return true;
	}
	return false;
}

static bool is_armed(tw_service *service, uint32_t slot, uint64_t word)
{
	(void)service, (void)slot;
	return tw__word_armed(word);
}

/* What a close ends. No mode waits for a disarmed one. */
static bool is_left(tw_service *service, uint32_t slot, uint64_t word)
{
	return tw__word_disarmed(word) || is_armed(service, slot, word);
}

static bool is_releasing(tw_service *service, uint32_t slot, uint64_t word)
{
	(void)service, (void)slot;
	return tw__word_state(word) == TW__RELEASING;
}

/* A background timer, of whose word `word` was read. False also if it has just ended. */
static bool is_background(const tw_service *service, uint32_t slot, uint64_t word)
{
	const struct tw__slots *slots = &service->slots;
	if (!tw__word_has_record(word) || !(tw__traits_of(slots, slot) & TW__TRAIT_BACKGROUND))
		return false;
	/* WORD5 */
	return tw__word_generation(tw_load_relaxed(&slots->words[slot])) ==
	       tw__word_generation(word);
}

/* A drain waits for it. So background timers are dropped only when no other callback runs. */
static bool holds_up(tw_service *service, uint32_t slot, uint64_t word)
{
	bool runs = tw__word_state(word) == TW__RUNNING || is_releasing(service, slot, word);
	return (runs || is_armed(service, slot, word)) && !is_background(service, slot, word);
}

/* It will run if nothing happens, and a drain waits for it. */
static bool is_pending(tw_service *service, uint32_t slot, uint64_t word)
{
	return tw__word_armed(word) && !is_background(service, slot, word);
}

/* False. */
static bool drop(tw_service *service, uint32_t slot, uint64_t word)
{
	while (is_left(service, slot, word) && !tw__drop(service, slot, &word)) {
	}
	return false;
}

/* The same. A callback that runs does not arm its timer again. */
static bool drop_or_bar(tw_service *service, uint32_t slot, uint64_t word)
{
	_Atomic uint64_t *at = &service->slots.words[slot];
	do {
		drop(service, slot, word);
		word = tw_load_acquire(at);
	} while (tw__word_state(word) == TW__RUNNING &&
		 !tw__word_cas_acq_rel(at, &word, word | TW__BARRED));
	return false;
}

/*
 * Drops all. False: another call has found nothing left, and ends the threads. A schedule that is
 * late then takes its timer back by itself, as if it had never been.
 */
static bool drop_all(tw_service *service, close_word_fn *what)
{
	uint32_t seen = tw_load_relaxed(&service->phase.end);
	do {
		if (seen >= TW__END_BEGUN)
			return false;
	} while (!tw_cas_acq_rel(&service->phase.end, &seen, seen + 1)); /* CLOSE1 */
	any(service, what);
	tw_add_release(&service->phase.end, (uint32_t)-1); /* CLOSE1 */
	return true;
}

/* --------------------------------------------------------------------- polls */

/*
 * A poll by the thread that closes, in a manual drive. False: another thread drives, and did not
 * stop by the deadline. That is rare, so the lock is tried again and again: ThreadSanitizer (of gcc
 * 12 and clang 14) does not see the timed lock on the monotonic clock.
 */
static bool drive_by_hand(tw_service *service, uint64_t deadline_ns)
{
	while (pthread_mutex_trylock(&service->driving)) {
		if (now() >= deadline_ns)
			return false;
		nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
	}
	tw__driver_publish_closed(service);
	struct tw__local *local = tw__local_of(service);
	if (local)
		tw__poll(service, local, SIZE_MAX);
	pthread_mutex_unlock(&service->driving);
	return true;
}

/* A whole poll in the mode that is asked for now, or a lower one. */
static int close_poll(const struct close_call *c)
{
	bool done = c->service->threaded ? tw__driver_await_poll(c->service, c->own_until_ns)
					 : drive_by_hand(c->service, c->deadline_ns);
	return done ? 0 : -ETIMEDOUT;
}

/* --------------------------------------------------------------------- waits */

/*
 * Waits a moment: for a run that someone waits for, a lower mode, or time to pass. The bell was
 * read before the look at the words. That look costs; the more it costs, the less often it is done.
 */
static int wait_a_moment(tw_service *service, uint32_t bell, uint64_t looking_ns,
			 uint64_t deadline_ns)
{
	uint64_t now_ns = now();
	if (now_ns >= deadline_ns)
		return -ETIMEDOUT;
	tw__futex_wait(&service->finish_bell, bell,
		       tw__earlier(now_ns + POLL_NS + 8 * looking_ns, deadline_ns));
	return 0;
}

/* RUN and DRAIN: polls until nothing is left that the mode waits for, or the mode is lower. */
static int run_out(const struct close_call *c, uint32_t mode)
{
	bool drains = mode == TW__CLOSING_DRAIN;
	bool by_itself = drains && c->service->threaded;
	for (;;) {
		uint32_t bell = tw_load_acquire(&c->service->finish_bell); /* RUN5, CLOSE2 */
		uint64_t begun_ns = now();
		if (close_mode(c->service) != mode ||
		    !any(c->service, drains ? holds_up : is_armed))
			return 0;
		int r = wait_a_moment(c->service, bell, now() - begun_ns, c->until_ns);
		if (!r && !by_itself)
			r = close_poll(c);
		if (r)
			return r;
	}
}

static int await_batches(const struct close_call *c)
{
	_Atomic uint32_t *at = &c->service->submitted->batches_out;
	uint32_t out = tw_or_seq_cst(at, TW__CLOSE_WAITS) | TW__CLOSE_WAITS; /* RUN4 */
	while (out != TW__CLOSE_WAITS) {
		tw__groups_complete(c->service); /* a callback may wait for one */
		uint64_t now_ns = now();
		if (now_ns >= c->deadline_ns)
			return -ETIMEDOUT;
		tw__futex_wait(at, out, tw__earlier(now_ns + SLICE_NS, c->deadline_ns));
		out = tw_load_acquire(at); /* RUN4 */
	}
	return 0;
}

/*
 * Callbacks, releases and completions have returned. Releases that run on threads which cancelled
 * are rare and short: looked at now and then. Completions that the executor has not called are
 * called here, and polls bring their work back.
 */
static int come_to_rest(const struct close_call *c)
{
	int r = await_batches(c);
	while (!r) {
		uint32_t bell = tw_load_acquire(&c->service->finish_bell); /* RUN5 */
		if (!any(c->service, is_releasing) && tw__groups_complete(c->service))
			break;
		r = wait_a_moment(c->service, bell, 0, c->deadline_ns);
		if (!r)
			r = close_poll(c);
	}
	return r;
}

/*
 * A run that was in progress may have armed its timer again, if it looked at the gate before it was
 * closed. True: this call ends the threads.
 */
static bool is_at_rest(tw_service *service)
{
	uint32_t none = 0;
	return !any(service, is_left) &&
	       tw_load_acquire(&service->submitted->batches_out) == TW__CLOSE_WAITS &&
	       tw__groups_forbid_completions(service) &&
	       tw_cas_acq_rel(&service->phase.end, &none, TW__END_BEGUN); /* CLOSE1 */
}

/* Another call ends the threads. */
static int await_end(const struct close_call *c)
{
	_Atomic uint32_t *end = &c->service->phase.end;
	uint32_t seen;
	while ((seen = tw_load_acquire(end)) == TW__END_BEGUN) /* CLOSE1 */
		if (!tw__futex_wait(end, seen, c->own_until_ns))
			return -ETIMEDOUT;
	return seen == TW__END_DONE ? ROUND_CLOSED : ROUND_AGAIN;
}

/*
 * Strands and the like that have been destroyed while their work is out (work.h). They need the
 * driver as before, so nothing is closed yet; with a manual drive their work may wait for it. 0,
 * -EBUSY, -ETIMEDOUT; -EDEADLK: this thread is in the work of one of them.
 */
static int await_layers(const struct close_call *c)
{
	tw_service *service = c->service;
	int r;
	while ((r = tw__service_forbid_holds(service)) == -EAGAIN) {
		if (tw__inside_work(service))
			return -EDEADLK;
		if (!service->threaded && !pthread_mutex_trylock(&service->driving)) {
			tw__works_offer(service);
			pthread_mutex_unlock(&service->driving);
		}
		if (tw__service_forbid_holds(service) == -EAGAIN && now() >= c->deadline_ns)
			return -ETIMEDOUT;
		nanosleep(&(struct timespec){.tv_nsec = LEAVE_NS}, NULL);
	}
	return r;
}

/* -------------------------------------------------------------------- rounds */

/*
 * RUN and DRAIN: all have started, but what a drain whose time is up leaves. From then on the
 * driver hands nothing over: a schedule that looked at the gate long ago may still push, and take
 * its timer back only later; if that were handed over between close's last looks, at the words and
 * at the batches, its run would begin after the answer.
 */
static int run_round(const struct close_call *c, uint32_t mode)
{
	int r = run_out(c, mode);
	if (r && !c->drains)
		return r;
	lower(c->service, &mode, TW__CLOSING_DROP);
	return ROUND_AGAIN;
}

static int close_round(const struct close_call *c)
{
	uint32_t mode = close_mode(c->service);
	int r = close_poll(c);
	if (r)
		return r;
	if (mode != TW__CLOSING_DROP)
		return run_round(c, mode);
	if (!drop_all(c->service, drop))
		return await_end(c);
	r = come_to_rest(c);
	return r || is_at_rest(c->service) ? r : ROUND_AGAIN;
}

/* Work has run whose pusher is still looking whether to ring (work.h, WORK4): a moment. */
static bool await_pushers(const struct close_call *c)
{
	while (!tw__works_are_pushed(c->service)) {
		if (now() >= c->own_until_ns)
			return false;
		nanosleep(&(struct timespec){.tv_nsec = PUSH_NS}, NULL);
	}
	return true;
}

static int end_threads(const struct close_call *c, void (*quiet)(tw_service *))
{
	tw_service *service = c->service;
	bool ended = quiet && await_pushers(c) &&
		     (!service->threaded || tw__driver_stop(service, c->own_until_ns));
	if (ended)
		quiet(service);
	tw_store_release(&service->phase.end, ended ? TW__END_DONE : 0); /* CLOSE1 */
	tw__futex_wake(&service->phase.end, INT_MAX);
	return ended || !quiet ? 0 : -ETIMEDOUT;
}

static struct close_call call_of(tw_service *service, enum tw_close_mode mode, uint64_t timeout_ns)
{
	struct close_call c = {.service = service, .drains = mode == TW_CLOSE_DRAIN};
	uint64_t now_ns = now(), own_ns = after(now_ns, OWN_GRACE_NS);
	c.until_ns = after(now_ns, timeout_ns);
	c.deadline_ns = c.drains ? after(c.until_ns, DRAIN_GRACE_NS) : c.until_ns;
	c.own_until_ns = own_ns > c.deadline_ns ? own_ns : c.deadline_ns;
	return c;
}

int tw__core_close(tw_service *service, enum tw_close_mode mode, uint64_t timeout_ns,
		   void (*quiet)(tw_service *), bool alone)
{
	struct close_call c = call_of(service, mode, timeout_ns);
	if (tw__inside(service))
		return -EDEADLK;
	if (c.drains && !service->clock->ops->runs && !close_mode(service)) {
		if (any(service, is_pending))
			return -EDEADLK;
		mode = TW_CLOSE_DROP; /* time does not pass: there is nothing to wait for */
	}
	if (!alone && !tw_load_acquire(&service->phase.closed) && !tw__gate_barrier(&service->gate))
		return -ENOTSUP;
	int r = await_layers(&c);
	if (r || tw_load_acquire(&service->phase.end) == TW__END_DONE) /* CLOSE1 */
		return r;
	ask(service, 1 + (uint32_t)mode);
	while ((r = close_round(&c)) == ROUND_AGAIN) {
	}
	if (!r)
		r = end_threads(&c, quiet);
	if (r == -ETIMEDOUT && quiet) {
		ask(service, TW__CLOSING_DROP);
		drop_all(service, drop_or_bar);
	}
	return r == ROUND_CLOSED ? 0 : r;
}
