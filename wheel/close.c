/*
 * Closing: refuse new work, settle the old, stop.
 *
 *   1. The driver publishes CLOSED and passes a heavy barrier: each schedule either was pushed before (the driver finds it) or sees
 *      CLOSED and takes its timer back (schedule.c).
 *   2. DROP: the closing thread ends every armed timer it finds in the control words. RUN: the driver hands over all it
 *      meets, deadline or not. DRAIN: time goes on until none is left, or the timeout comes, then as DROP.
 *   3. Wait until executors have used up all tickets and no release is under way; stop the tick thread.
 *
 * The control words are the truth throughout: "nothing pending" is counted from them. Closers take turns (close_lock); with a manual
 * drive the closer is the driver.
 */
#include <limits.h>
#include <time.h>

#include "wheel/driver.h"
#include "wheel/run.h"

enum { POLL_NS = 1000000 };

static uint64_t now(void)
{
	return tw_clock_now(tw_clock_monotonic());
}

static uint64_t deadline_after(uint64_t timeout_ns)
{
	uint64_t now_ns = now();
	return timeout_ns < UINT64_MAX - now_ns ? now_ns + timeout_ns : UINT64_MAX;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Calls what(word) for each slot in use; true as soon as it says so. */
static bool any_word(tw_service *service, bool (*what)(tw_service *, uint32_t slot, uint64_t word))
{
	uint32_t end = tw_load_acquire(&service->slots.fresh);
	for (uint32_t slot = 1; slot < end; slot++) {
		uint64_t word = tw_load_acquire(&service->slots.words[slot]);
		if (tw__word_state(word) != TW__FREE && what(service, slot, word))
			return true;
	}
	return false;
}

static bool is_armed(tw_service *service, uint32_t slot, uint64_t word)
{
	(void)service;
	(void)slot;
	return tw__word_armed(word);
}

static bool is_releasing(tw_service *service, uint32_t slot, uint64_t word)
{
	(void)service;
	(void)slot;
	return tw__word_state(word) == TW__SETTLING;
}

static bool drop_if_armed(tw_service *service, uint32_t slot, uint64_t word)
{
	while (tw__word_armed(word) && !tw__drop(service, tw__local_of(service), slot, &word)) {
	}
	return false;
}

/* ------------------------------------------------------- whose turn is it */

static bool lock(tw_service *service, uint64_t deadline_ns)
{
	for (;;) {
		uint32_t expected = 0;
		if (tw_cas_acq_rel(&service->close_lock, &expected, 1))
			return true;
		if (!tw__futex_wait(&service->close_lock, 1, deadline_ns))
			return false;
	}
}

static void unlock(tw_service *service)
{
	tw_store_release(&service->close_lock, 0);
	tw__futex_wake(&service->close_lock, INT_MAX);
}

/* --------------------------------------------------------------------- turns */

/* A manual drive's turn by the closer. False: another thread drives, and did not stop by the deadline. */
static bool drive_by_hand(tw_service *service, uint32_t mode, uint64_t deadline_ns)
{
	struct timespec until = {.tv_sec = (time_t)(deadline_ns / 1000000000u),
				 .tv_nsec = (long)(deadline_ns % 1000000000u)};
	if (deadline_ns == UINT64_MAX)
		pthread_mutex_lock(&service->driving);
	else if (pthread_mutex_clocklock(&service->driving, CLOCK_MONOTONIC, &until))
		return false;
	if (tw_load_relaxed(&service->closed) != mode)
		tw__driver_publish_closed(service, mode);
	struct tw__local *local = tw__local_of(service);
	if (local)
		tw__turn(service, local, SIZE_MAX);
	pthread_mutex_unlock(&service->driving);
	return true;
}

/* A whole turn in the mode that was asked for. */
static bool turn(tw_service *service, uint32_t mode, uint64_t deadline_ns)
{
	if (service->threaded)
		return tw__driver_await_turn(service, deadline_ns);
	return drive_by_hand(service, mode, deadline_ns);
}

static void ask(tw_service *service, uint32_t mode)
{
	tw_store_seq_cst(&service->closing, mode);
	if (service->threaded)
		tw__gate_ring(&service->gate);
}

/* ------------------------------------------------------------------ settling */

/*
 * Waits a moment: for a run that someone waits for, or for time to pass. Looking at all words costs; the more it costs,
 * the less often it is done.
 */
static void wait_a_moment(tw_service *service, uint64_t looking_ns, uint64_t deadline_ns)
{
	uint32_t bell = tw_load_acquire(&service->finish_bell);
	tw__futex_wait(&service->finish_bell, bell, earlier(now() + POLL_NS + 8 * looking_ns, deadline_ns));
}

/* RUN and DRAIN: turns until nothing is armed. */
static bool run_out(tw_service *service, uint32_t mode, uint64_t deadline_ns)
{
	for (;;) {
		uint64_t before_ns = now();
		if (!any_word(service, is_armed))
			return true;
		uint64_t after_ns = now();
		if (after_ns >= deadline_ns)
			return false;
		wait_a_moment(service, after_ns - before_ns, deadline_ns);
		bool by_itself = mode == 1 + TW_CLOSE_DRAIN && service->threaded;
		if (!by_itself && !turn(service, mode, deadline_ns))
			return false;
	}
}

static bool await_batches(tw_service *service, uint64_t deadline_ns)
{
	uint32_t out = tw_or_seq_cst(&service->batches_out, TW__CLOSER_WAITS) | TW__CLOSER_WAITS; /* R4 */
	while (out != TW__CLOSER_WAITS) {
		if (!tw__futex_wait(&service->batches_out, out, deadline_ns))
			return false;
		out = tw_load_acquire(&service->batches_out); /* R4 */
	}
	return true;
}

/* Releases that run on threads which cancelled. Rare and short: looked at now and then. */
static bool await_releases(tw_service *service, uint64_t deadline_ns)
{
	while (any_word(service, is_releasing)) {
		if (now() >= deadline_ns)
			return false;
		wait_a_moment(service, 0, deadline_ns);
	}
	return true;
}

static int settle(tw_service *service, uint32_t mode, uint64_t deadline_ns)
{
	uint64_t drain_deadline_ns = service->clock->ops->runs ? deadline_ns : 0; /* nobody need advance the clock */
	if (mode == 1 + TW_CLOSE_DRAIN)
		deadline_ns = UINT64_MAX; /* the timeout bounds the draining alone */
	ask(service, mode);
	if (!turn(service, mode, deadline_ns))
		return -ETIMEDOUT;
	if (mode == 1 + TW_CLOSE_RUN && !run_out(service, mode, deadline_ns))
		return -ETIMEDOUT;
	if (mode == 1 + TW_CLOSE_DRAIN)
		run_out(service, mode, drain_deadline_ns);
	if (mode != 1 + TW_CLOSE_DROP) {
		/* From here on the driver hands nothing over: a schedule that looked at the gate long ago may still push. */
		mode = 1 + TW_CLOSE_DROP;
		ask(service, mode);
		if (!turn(service, mode, deadline_ns))
			return -ETIMEDOUT;
	}
	do {
		any_word(service, drop_if_armed);
		/* A run that was under way may still arm its timer again, if it looked at the gate before it was closed. */
		if (!await_batches(service, deadline_ns) || !await_releases(service, deadline_ns) ||
		    !turn(service, mode, deadline_ns))
			return -ETIMEDOUT;
	} while (any_word(service, is_armed) || tw_load_acquire(&service->batches_out) != TW__CLOSER_WAITS);
	if (service->threaded && !tw__driver_stop(service, deadline_ns))
		return -ETIMEDOUT;
	service->settled = true;
	return 0;
}

/* Whom would a drain wait for, on a clock that only the caller could advance? */
static bool would_wait_for_itself(tw_service *service, enum tw_close_mode mode)
{
	return mode == TW_CLOSE_DRAIN && !service->clock->ops->runs && any_word(service, is_armed);
}

int tw__core_close(tw_service *service, enum tw_close_mode mode, uint64_t timeout_ns)
{
	if (!service || (unsigned)mode > TW_CLOSE_DRAIN)
		return -EINVAL;
	if (tw__inside(service) || would_wait_for_itself(service, mode))
		return -EDEADLK;
	uint64_t deadline_ns = deadline_after(timeout_ns);
	if (!lock(service, deadline_ns))
		return -ETIMEDOUT;
	int r = service->settled ? 0 : settle(service, 1 + (uint32_t)mode, deadline_ns);
	unlock(service);
	return r;
}
