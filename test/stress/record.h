/*
 * What the ledger stress knows of each timer, and the rules that it holds the library to.
 *
 * Each accepted timer has a record of its own, which is its arg. Whoever does something to a timer
 * notes the answer there, and each run and release looks whether what happens now may still happen:
 *   - no run starts once a cancel has answered TW_CANCELLED or TW_GONE, or a reset -ENOENT, or the
 *     release was called;
 *   - after TW_RUNNING the run that is under way is the last;
 *   - no run starts before `floor_ns`, unless it is close that runs it;
 *   - runs do not overlap, and the release comes once, after the last;
 *   - once a cancel of its group has returned, no call answers TW_CANCELLED or moves it, and one
 *     claimed run at most still follows.
 *
 * floor_ns is the earliest instant of the next run. A reset that has answered 0 has moved it: the
 * timer was armed, so the next run comes after the reset and owes it obedience. While the call is
 * under way (candidate_ns) the run may be meant for the old instant or for the new one, and is held
 * to the smaller of the two. Resets of one timer from several threads are made one at a time
 * (reset_lock), or nobody could tell which was the last.
 *
 * Plain fields are written by callbacks only: the library orders the runs of one timer, and
 * ThreadSanitizer watches it.
 */
#ifndef TEST_STRESS_RECORD_H
#define TEST_STRESS_RECORD_H

#include <stdarg.h>

#include "test/stress/foreign.h"
#include "test/stress/stress.h"
#include "test/support/current.h"

enum record_kind { ONE_SHOT, RE_ARMING, FIXED_RATE, FIXED_DELAY };

struct record {
	/* Written before the timer is scheduled. */
	tw_service *service;
	enum record_kind kind;
	bool has_release;
	struct life *life; /* of the group that it is a member of, or NULL */
	uint64_t period_ns;
	tw_executor *named;   /* the executor that it named, or NULL */
	uint32_t runs_wanted; /* count of a series, runs of a re-arming one-shot */
	uint64_t seed;        /* for what its callback does */

	tw_timer timer; /* written by the schedule */
	atomic_bool accepted;

	_Atomic uint64_t floor_ns;
	_Atomic uint64_t candidate_ns; /* what a reset under way asks for; UINT64_MAX: none */
	atomic_flag reset_lock;
	/* moves on as a reset begins, and as it ends: odd while one is under way */
	atomic_uint reset_calls;

	atomic_uint started, inside; /* runs */
	atomic_uint releases, fate;
	atomic_uint cancelled;        /* answers TW_CANCELLED */
	atomic_uint limit;            /* runs that may have started in the end */
	atomic_bool ended;            /* no run may start any more */
	atomic_bool running_seen;     /* a cancel answered TW_RUNNING */
	atomic_bool released_open;    /* released before close began */
	atomic_bool ended_with_group; /* a cancel of its group that met it has returned */

	/* Plain on purpose. */
	uint32_t runs;
	uint32_t reset_calls_at_last_run;
};

/* What of the round the rules need. */
static struct {
	atomic_bool closing; /* close has been called */
	atomic_ullong resets, rejected, overruns_told, operations;
} round_now;

__attribute__((format(printf, 2, 3), noreturn)) static void violation_by(const struct record *r,
									 const char *format, ...)
{
	va_list args;
	violation_begins();
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	if (r)
		fprintf(stderr,
			"\n  kind %d, release %d, started %u, inside %u, releases %u, fate %u, "
			"cancelled %u, limit %u,"
			" ended %d, running seen %d, floor %" PRIu64 " ns, now %" PRIu64 " ns",
			(int)r->kind, r->has_release, atomic_load(&r->started),
			atomic_load(&r->inside), atomic_load(&r->releases), atomic_load(&r->fate),
			atomic_load(&r->cancelled), atomic_load(&r->limit), atomic_load(&r->ended),
			atomic_load(&r->running_seen), atomic_load(&r->floor_ns), stress_now_ns());
	fprintf(stderr, "\n");
	_exit(1);
}

static void record_prepare(struct record *r, tw_service *service, enum record_kind kind,
			   bool has_release)
{
	memset(r, 0, sizeof(*r));
	r->service = service;
	r->kind = kind;
	r->has_release = has_release;
	r->runs_wanted = 1;
	atomic_store(&r->limit, UINT32_MAX);
	atomic_store(&r->candidate_ns, UINT64_MAX);
}

static void expect_over(struct record *r, const char *what)
{
	atomic_store(&r->ended, true);
	if (atomic_load(&r->inside) != 0)
		violation_by(r, "%s while its callback runs", what);
	if (r->has_release && atomic_load(&r->releases) != 1)
		violation_by(r, "%s before its release has returned", what);
}

static void lower_limit(struct record *r, uint32_t limit)
{
	uint32_t known = atomic_load(&r->limit);
	while (limit < known && !atomic_compare_exchange_weak(&r->limit, &known, limit))
		;
}

/*
 * The run under way is the last: the one seen inside, or one that has been claimed and shows in a
 * moment.
 */
static void note_running(struct record *r)
{
	atomic_store(&r->running_seen, true);
	uint32_t started = atomic_load(&r->started);
	lower_limit(r, atomic_load(&r->inside) && atomic_load(&r->started) == started
			   ? started
			   : started + 1);
}

static void note_cancel(struct record *r, int answer)
{
	switch (answer) {
	case TW_CANCELLED:
		if (atomic_fetch_add(&r->cancelled, 1) != 0)
			violation_by(r, "two cancels were told TW_CANCELLED");
		expect_over(r, "TW_CANCELLED");
		break;
	case TW_GONE:
		if (r->life) /* its release may be still to come */
			atomic_store(&r->ended, true);
		else
			expect_over(r, "TW_GONE");
		break;
	case TW_RUNNING:
		note_running(r);
		break;
	default:
		violation_by(r, "tw_cancel answers %d", answer);
	}
}

static void record_cancel(struct record *r)
{
	bool with_group = atomic_load(&r->ended_with_group);
	int answer = tw_cancel(r->service, r->timer);
	if (answer == TW_CANCELLED && with_group)
		violation_by(r, "TW_CANCELLED after its group's cancel");
	note_cancel(r, answer);
}

/* From outside of the timer's own callback. */
static void record_cancel_wait(struct record *r, uint64_t timeout_ns)
{
	bool with_group = atomic_load(&r->ended_with_group);
	int answer = tw_cancel_wait(r->service, r->timer, timeout_ns);
	if (answer == TW_CANCELLED && with_group)
		violation_by(r, "TW_CANCELLED after its group's cancel");
	if (answer == TW_FINISHED) {
		atomic_store(&r->running_seen, true);
		expect_over(r, "TW_FINISHED");
	} else {
		note_cancel(r, answer);
	}
	if (answer == TW_RUNNING && timeout_ns == TW_FOREVER)
		violation_by(r, "waiting without bound answers TW_RUNNING");
	if (answer == TW_GONE)
		expect_over(r, "TW_GONE from a wait");
	if (answer != TW_RUNNING && r->runs != atomic_load(&r->started))
		violation_by(r, "what the callback wrote is not visible after a wait: %u runs",
			     r->runs);
}

/*
 * The reset has answered 0. If the floor is no longer what it was, a run has come in between, and
 * nobody can tell whether before the reset took effect or after it: then the lower floor is the one
 * that surely holds.
 */
static void move_floor(struct record *r, uint64_t before_ns, uint64_t due_ns)
{
	uint64_t floor_ns = before_ns;
	if (atomic_compare_exchange_strong(&r->floor_ns, &floor_ns, due_ns))
		return;
	while (due_ns < floor_ns && !atomic_compare_exchange_weak(&r->floor_ns, &floor_ns, due_ns))
		;
}

/* From outside of the timer's own callback. absolute: by tw_reset_at. */
static void record_reset(struct record *r, uint64_t delay_ns, bool absolute)
{
	if (atomic_flag_test_and_set(&r->reset_lock))
		return; /* another thread is at it */
	atomic_fetch_add(&r->reset_calls, 1);
	uint64_t due_ns = stress_now_ns() + delay_ns, before_ns = atomic_load(&r->floor_ns);
	atomic_store(&r->candidate_ns, due_ns);
	bool with_group = atomic_load(&r->ended_with_group);
	int answer = absolute ? tw_reset_at(r->service, r->timer, due_ns)
			      : tw_reset(r->service, r->timer, delay_ns);
	if (answer == 0 && with_group)
		violation_by(r, "moved after its group's cancel");
	if (answer == 0) {
		move_floor(r, before_ns, due_ns);
		atomic_fetch_add(&round_now.resets, 1);
	} else if (answer == -ENOENT) {
		atomic_store(&r->ended, true);
	} else if (answer != -EBUSY && answer != -ESHUTDOWN && answer != -EAGAIN) {
		violation_by(r, "tw_reset answers %d", answer);
	}
	atomic_store(&r->candidate_ns, UINT64_MAX);
	atomic_fetch_add(&r->reset_calls, 1);
	atomic_flag_clear(&r->reset_lock);
}

/* From its own callback. */
static void record_re_arm(struct record *r, uint64_t delay_ns)
{
	uint64_t due_ns = stress_now_ns() + delay_ns;
	int answer = tw_reset(r->service, r->timer, delay_ns);
	if (answer == 0) {
		atomic_store(&r->floor_ns, due_ns);
		atomic_fetch_add(&round_now.resets, 1);
	} else if (answer != -ESHUTDOWN && answer != -ECANCELED) {
		violation_by(r, "tw_reset from its own callback answers %d", answer);
	}
}

static void check_instant(struct record *r, uint64_t now_ns)
{
	/* first: a reset that is over has moved the floor */
	uint64_t candidate_ns = atomic_load(&r->candidate_ns);
	uint64_t floor_ns = atomic_load(&r->floor_ns), overruns = current_run().overruns;
	unsigned reset_calls = atomic_load(&r->reset_calls);
	if (candidate_ns < floor_ns)
		floor_ns = candidate_ns;
	/*
	 * Missed instants lie between the last run and this one, unless the phase may have moved.
	 */
	bool in_phase = r->kind == FIXED_RATE && reset_calls == r->reset_calls_at_last_run &&
			reset_calls % 2 == 0;
	if (in_phase)
		floor_ns += overruns * r->period_ns;
	if (now_ns < floor_ns && !current_run().closing)
		violation_by(r, "a run %" PRIu64 " ns early, %" PRIu64 " overruns",
			     floor_ns - now_ns, overruns);
	if (r->kind == FIXED_RATE)
		atomic_store(&r->floor_ns, floor_ns + r->period_ns);
	else if (overruns != 0)
		violation_by(r, "overruns of what is no fixed-rate series");
	r->reset_calls_at_last_run = reset_calls;
	atomic_fetch_add(&round_now.overruns_told, overruns);
}

/* First thing in the callback. */
static void record_enter(struct record *r)
{
	uint64_t now_ns = stress_now_ns();
	if (atomic_load(&r->ended))
		violation_by(r, "a run after the timer's end");
	if (atomic_fetch_add(&r->started, 1) + 1 > atomic_load(&r->limit))
		violation_by(r, "a further run after TW_RUNNING");
	if (atomic_fetch_add(&r->inside, 1) != 0) /* after `started`: see note_running */
		violation_by(r, "two runs of one timer overlap");
	r->runs++;
	if (tw_self().id != r->timer.id)
		violation_by(r, "tw_self() is another timer");
	if (r->named && foreign_here != r->named)
		violation_by(r, "a run by another executor than it named");
	check_instant(r, now_ns);
}

/* Last thing in the callback. */
static void record_leave(struct record *r)
{
	if (r->kind == FIXED_DELAY)
		atomic_store(&r->floor_ns, stress_now_ns() + r->period_ns);
	if (atomic_fetch_sub(&r->inside, 1) != 1)
		violation_by(r, "two runs of one timer overlapped");
}

static void record_released(void *arg, enum tw_fate fate)
{
	struct record *r = arg;
	atomic_store(&r->ended, true);
	if (atomic_load(&r->inside) != 0)
		violation_by(r, "released while its callback runs");
	if (tw_self().id != r->timer.id)
		violation_by(r, "tw_self() in a release is another timer");
	if (tw_cancel(r->service, r->timer) != TW_RUNNING)
		violation_by(r, "a cancel from its own release is not told TW_RUNNING");
	atomic_store(&r->fate, fate);
	atomic_store(&r->released_open, !atomic_load(&round_now.closing));
	if (atomic_fetch_add(&r->releases, 1) != 0)
		violation_by(r, "a second release");
}

struct account {
	uint64_t scheduled, fired, cancelled, dropped, runs;
	uint64_t either; /* one-shots without release that ran and were cancelled in their run */
	uint64_t unrun;  /* members without release, cancelled with their group or dropped */
};

static void account_untold(struct account *sum, struct record *r)
{
	unsigned ran = atomic_load(&r->started), cancelled = atomic_load(&r->cancelled);
	if (ran + cancelled > 1)
		violation_by(r, "a one-shot with two fates");
	if (ran && (atomic_load(&r->running_seen) || atomic_load(&r->ended_with_group)))
		sum->either++;
	else if (ran)
		sum->fired++;
	else if (cancelled)
		sum->cancelled++;
	else if (r->life)
		sum->unrun++;
	else
		sum->dropped++;
}

static void account_fired(struct record *r)
{
	unsigned ran = atomic_load(&r->started);
	if (ran == 0 || ran > r->runs_wanted)
		violation_by(r, "fired after %u runs of %u", ran, r->runs_wanted);
	if (atomic_load(&r->cancelled))
		violation_by(r, "fired, and cancelled");
	if (atomic_load(&r->released_open) && !atomic_load(&r->running_seen) && !r->life &&
	    ran != r->runs_wanted)
		violation_by(r, "ended as fired after %u runs of %u", ran, r->runs_wanted);
}

static void account_told(struct account *sum, struct record *r)
{
	unsigned ran = atomic_load(&r->started), fate = atomic_load(&r->fate);
	if (atomic_load(&r->releases) != 1)
		violation_by(r, "%u releases", atomic_load(&r->releases));
	if (fate == TW_FATE_FIRED) {
		account_fired(r);
		sum->fired++;
	} else if (fate == TW_FATE_CANCELLED) {
		if (!atomic_load(&r->cancelled) && !atomic_load(&r->running_seen) && !r->life)
			violation_by(r, "cancelled by nobody");
		sum->cancelled++;
	} else {
		if (atomic_load(&r->cancelled))
			violation_by(r, "dropped, and cancelled");
		if (atomic_load(&r->released_open))
			violation_by(r, "dropped before close");
		sum->dropped++;
	}
	if (r->kind == ONE_SHOT && ran + (fate != TW_FATE_FIRED) != 1 &&
	    !atomic_load(&r->running_seen) && !r->life)
		violation_by(r, "a one-shot with two fates");
}

static void account_record(struct account *sum, struct record *r)
{
	unsigned ran = atomic_load(&r->started);
	if (!r->service)
		return; /* never used */
	if (!atomic_load(&r->accepted)) {
		if (ran || atomic_load(&r->releases) || atomic_load(&r->cancelled))
			violation_by(r, "a refused timer lives");
		return;
	}
	if (ran > atomic_load(&r->limit))
		violation_by(r, "a further run after TW_RUNNING");
	if (ran > r->runs_wanted)
		violation_by(r, "%u runs of %u", ran, r->runs_wanted);
	sum->scheduled++;
	sum->runs += ran;
	if (r->has_release)
		account_told(sum, r);
	else
		account_untold(sum, r);
}

#endif
