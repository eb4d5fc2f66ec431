/*
 * Closing: refuses new work, ends the pending work, stops. A call looks, acts and waits a moment,
 * until one finds nothing left:
 *
 *   1. The driver ends ACCEPTING and passes a heavy barrier: each schedule was pushed before, or
 *      sees that and takes its timer back (schedule.c).
 *   2. RUN: the driver hands over all it meets. DRAIN: time goes on until only background timers
 *      are left. Then the mode is DROP.
 *   3. DROP: this thread ends every armed timer that it finds in the control words, and bars those
 *      that run from being armed again. So one walk is enough.
 *   4. When executors have used up all tickets, no release is in progress, and nobody puts off the
 *      end (tw__end_put_off), one call stops the tick thread and the pool.
 *
 * With a manual drive the thread that closes is the driver. The mode is one for all calls, and only
 * falls: DRAIN, RUN, DROP. Each call works until its own timeout, and each step may be done twice.
 * At its timeout a call lowers the mode to DROP, and drops. tw_service_destroy needs no barrier:
 * all other calls happened before.
 *
 * Pairing table
 *   CLOSE1  phase.end: CAS acq_rel (a call begins to drop; a completion is given), or add relaxed
 *       (by a thread that is waited for already, or holds the service), sub release, the last
 *       access to the service -> CAS acq_rel 0 to BEGUN: the releases of what calls drop come
 *       before any answer 0, and none comes later; nobody looks at a service that is freed. Store
 *       release (DONE) -> load acquire: the threads have ended before another call answers 0.
 *   CLOSE2  phase.closing: CAS seq_cst, then finish_bell moves -> bell, then the mode, then sleep
 *       on the bell's value: no sleep misses a lower mode.
 */
#include "wheel/service/parts.h"

#include "wheel/core/frame.h"
#include "wheel/core/wake.h"
#include "wheel/driver/driver.h"
#include "wheel/run/run.h"
#include "wheel/run/work.h"
#include "wheel/timer/cancel.h"

enum {
	FIRST_WAIT_NS = 20000, /* each next one is twice as long */
	LONGEST_WAIT_NS = 1000000,
	DRAIN_GRACE_NS = 1000000000,
	OWN_GRACE_NS = 100000000
};

/* A look's answers, beside 0 (nothing is left; this call ends the threads) and errors. */
enum { LOOK_AGAIN = 1, LOOK_CLOSED };

/* One call of close. */
struct close_call {
	tw_service *service;
	bool drains;
	uint64_t until_ns;     /* the timeout */
	uint64_t deadline_ns;  /* of waits for callbacks */
	uint64_t own_until_ns; /* of waits for the tick thread */
	uint64_t wait_ns;      /* the next wait */
};

static uint64_t now(void)
{
	return tw_clock_now(tw_clock_monotonic());
}

/* Waits for the bell, or a moment: the more a look costs, the longer. */
static int wait_a_moment(struct close_call *c, uint32_t bell, uint64_t looking_ns,
			 uint64_t deadline_ns)
{
	uint64_t now_ns = now();
	if (now_ns >= deadline_ns)
		return -ETIMEDOUT;
	tw__futex_wait(&c->service->finish_bell, bell,
		       tw__earlier(now_ns + c->wait_ns + 8 * looking_ns, deadline_ns));
	c->wait_ns = tw__earlier(2 * c->wait_ns, LONGEST_WAIT_NS);
	return LOOK_AGAIN;
}

static uint32_t bell_of(tw_service *service)
{
	return tw_load_acquire(&service->finish_bell); /* RUN5, CLOSE2 */
}

/* ------------------------------------------------------------------ the mode */

/* The mode that calls have asked for; 0: none yet. */
static uint32_t close_mode(const tw_service *service)
{
	return tw_load_acquire(&service->phase.closing); /* CLOSE2 */
}

static void lower(tw_service *service, uint32_t mode)
{
	uint32_t seen = close_mode(service);
	do {
		if (seen && seen <= mode)
			return;
	} while (!tw_cas_seq_cst(&service->phase.closing, &seen, mode)); /* CLOSE2 */
	tw__ring_finish(service);                                        /* CLOSE2 */
	if (service->threaded)
		tw__gate_ring(&service->gate);
}

/* ---------------------------------------------------------- the control words */

/* `word` was the timer's. False also if it has just ended. */
static bool is_background(const tw_service *service, uint32_t slot, uint64_t word)
{
	const struct tw__slots *slots = &service->slots;
	if (!tw__word_has_record(word) || !(tw__traits_of(slots, slot) & TW__TRAIT_BACKGROUND))
		return false;
	/* WORD5 */
	return tw__word_generation(tw_load_relaxed(&slots->words[slot])) ==
	       tw__word_generation(word);
}

/* What a close looks for in the control words; together: timers that are all of it. */
enum {
	ARMED = 1,
	RELEASING = 2,
	FOREGROUND = 4 /* armed, or runs, and no background timer: a drain waits for it */
};

static bool is_all(const tw_service *service, const struct tw__walk *at, unsigned wanted)
{
	return (!(wanted & ARMED) || tw__word_armed(at->word)) &&
	       (!(wanted & RELEASING) || tw__word_state(at->word) == TW__RELEASING) &&
	       (!(wanted & FOREGROUND) ||
		(!tw__word_disarmed(at->word) && !is_background(service, at->slot, at->word)));
}

static bool any(const tw_service *service, unsigned wanted)
{
	struct tw__walk at = tw__walk_over(&service->slots);
	bool on;
	do
		on = tw__walk_on(&at);
	while (on && !is_all(service, &at, wanted));
	return on;
}

/* Ends it, or bars it from being armed again. */
static void drop_or_bar(tw_service *service, uint32_t slot, uint64_t word)
{
	bool done;
	do {
		if (tw__word_waits(word))
			done = tw__drop(service, slot, &word);
		else
			done = tw__word_state(word) != TW__RUNNING || word & TW__BARRED ||
			       tw__word_cas_acq_rel(&service->slots.words[slot], &word,
						    word | TW__BARRED); /* planted: not_barred */
	} while (!done);
}

/* False: another call has found nothing left, and ends the threads. */
static bool drop_all(tw_service *service)
{
	if (!tw__end_put_off(service))
		return false;
	for (struct tw__walk at = tw__walk_over(&service->slots); tw__walk_on(&at);)
		drop_or_bar(service, at.slot, at.word);
	tw__end_may_come(service);
	return true;
}

/* ---------------------------------------------------------------------- looks */

/*
 * In a manual drive. False: another thread drives, until the deadline. ThreadSanitizer (gcc 12)
 * does not see a timed lock on the monotonic clock.
 */
static bool drive_by_hand(struct close_call *c)
{
	tw_service *service = c->service;
	while (pthread_mutex_trylock(&service->driving))
		if (wait_a_moment(c, bell_of(service), 0, c->deadline_ns) == -ETIMEDOUT)
			return false;
	tw__driver_publish_closed(service);
	struct tw__local *local = tw__local_of(service);
	if (local)
		tw__poll(service, local, SIZE_MAX);
	pthread_mutex_unlock(&service->driving);
	return true;
}

/* True: this call ends the threads. */
static bool is_at_rest(tw_service *service)
{
	uint32_t none = 0;
	/* a callback may wait for a completion that the executor has not called */
	if (tw_load_acquire(&service->phase.end))
		tw__groups_complete(service);
	return !tw_load_acquire(&service->submitted->batches_out) && /* RUN4 */
	       /* planted: release_not_awaited */
	       !any(service, RELEASING) &&
	       tw_cas_acq_rel(&service->phase.end, &none, TW__END_BEGUN); /* CLOSE1 */
}

/*
 * One look, after a whole poll in this mode or a lower one; a tick thread drains by itself.
 *
 * RUN and DRAIN end as a DROP: a schedule that looked at the gate long ago may still push, and take
 * its timer back later. If that were handed over after the last look, its run would begin after the
 * answer.
 */
static int close_look(struct close_call *c)
{
	tw_service *service = c->service;
	uint32_t bell = bell_of(service), mode = close_mode(service);
	bool by_itself = service->threaded && mode == TW__CLOSING_DRAIN &&
			 tw_load_acquire(&service->phase.closed);
	if (!by_itself && !(service->threaded ? tw__driver_await_poll(service, c->own_until_ns)
					      : drive_by_hand(c)))
		return -ETIMEDOUT;
	uint64_t begun_ns = now();
	if (mode != TW__CLOSING_DROP) {
		if (any(service, mode == TW__CLOSING_DRAIN ? FOREGROUND : ARMED)) {
			int r = wait_a_moment(c, bell, now() - begun_ns, c->until_ns);
			if (r == LOOK_AGAIN || !c->drains)
				return r;
		}
		lower(service, TW__CLOSING_DROP);
		return LOOK_AGAIN;
	}
	if (!drop_all(service))
		return tw_load_acquire(&service->phase.end) == TW__END_DONE /* CLOSE1 */
			   ? LOOK_CLOSED
			   : wait_a_moment(c, bell, 0, c->own_until_ns);
	return is_at_rest(service) ? 0 : wait_a_moment(c, bell, now() - begun_ns, c->deadline_ns);
}

/* ------------------------------------------------------------------------ ends */

static int end_threads(struct close_call *c)
{
	tw_service *service = c->service;
	bool ended = !service->threaded || tw__driver_stop(service, c->own_until_ns);
	if (ended)
		tw__service_leave_pool(service);                         /* it is idle */
	tw_store_release(&service->phase.end, ended ? TW__END_DONE : 0); /* CLOSE1 */
	return ended ? 0 : -ETIMEDOUT;
}

/* alone: no other thread uses the service. */
static tw_cold int service_end(const char *call, tw_service *service, enum tw_close_mode mode,
			       uint64_t timeout_ns, bool alone)
{
	struct close_call c = {
	    .service = service, .drains = mode == TW_CLOSE_DRAIN, .wait_ns = FIRST_WAIT_NS};
	uint64_t now_ns = now(), own_ns = tw__after(now_ns, OWN_GRACE_NS);
	c.until_ns = tw__after(now_ns, timeout_ns);
	c.deadline_ns = c.drains ? tw__after(c.until_ns, DRAIN_GRACE_NS) : c.until_ns;
	c.own_until_ns = own_ns > c.deadline_ns ? own_ns : c.deadline_ns;
	if (tw__inside(service))
		return tw__waits_inside(call);
	if (c.drains && service->time.steps && !close_mode(service)) {
		if (any(service, ARMED | FOREGROUND))
			return tw__refuse(-EDEADLK, call,
					  "TW_CLOSE_DRAIN would wait for timers on a clock that "
					  "only the caller advances; advance it first");
		mode = TW_CLOSE_DROP; /* time does not pass */
	}
	if (!alone && !tw_load_acquire(&service->phase.closed) && !tw__gate_barrier(&service->gate))
		return -ENOTSUP;
	if (tw__inside_work(service) && !tw__service_is_held(service))
		return tw__waits_inside(call); /* of a destroyed layer */
	if (!tw__service_forbid_holds(service))
		return -EBUSY;
	if (tw_load_acquire(&service->phase.end) == TW__END_DONE) /* CLOSE1 */
		return 0;
	int r;
	lower(service, 1 + (uint32_t)mode);
	while ((r = close_look(&c)) == LOOK_AGAIN) {
	}
	if (!r)
		r = end_threads(&c);
	if (r == -ETIMEDOUT) {
		lower(service, TW__CLOSING_DROP);
		drop_all(service);
	}
	return r == LOOK_CLOSED ? 0 : r;
}

int tw_service_close(tw_service *service, enum tw_close_mode mode, uint64_t timeout_ns)
{
	TW__UNCANCELLED;
	int r = tw__service_check(service);
	if (r)
		return r;
	if ((unsigned)mode > TW_CLOSE_DRAIN)
		return tw__bad(-EINVAL, __func__, "mode");
	return service_end(__func__, service, mode, timeout_ns, false);
}

/* In a child the callback or task that this is may yet return. */
static int end_forked(tw_service *service)
{
	if (tw__inside(service) || tw__inside_work(service))
		return -EDEADLK;
	return tw__service_is_held(service) ? -EBUSY : 0;
}

tw_cold int tw_service_destroy(tw_service *service)
{
	TW__UNCANCELLED;
	if (!service)
		return 0;
	int r = tw__forked(service)
		    ? end_forked(service)
		    : service_end(__func__, service, TW_CLOSE_DROP, TW_FOREVER, true);
	if (!r)
		tw__service_free(service);
	return r;
}
