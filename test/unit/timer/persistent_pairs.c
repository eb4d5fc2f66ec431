/*
 * Each two calls on a persistent timer, in each state: the second one is made at each point of the
 * first. Answers and what follows are those of one order of the two or of the other.
 */
#include <stdio.h>

#include "test/support/interleave.h"
#include "test/support/rig_suite.h"

TestSuite(timer_persistent_pairs, .init = open_rig, .fini = close_rig, .timeout = 300);

enum state {
	NEVER_ARMED,
	IN_LANE,
	IN_WHEEL_FAR,
	DISARMED,
	DUE, /* the driver has not met the entry yet */
	DISARMED_DUE,
	SUBMITTED,
	STATES
};

static struct probe probe;

/* ------------------------------------------------------------ the calls */

static int arm_near(tw_service *service, tw_timer timer)
{
	return tw_reset(service, timer, 10 * MS);
}

static int arm_sooner(tw_service *service, tw_timer timer)
{
	return tw_reset_earlier(service, timer, 5 * MS);
}

static int arm_far(tw_service *service, tw_timer timer)
{
	return tw_reset(service, timer, 90 * DAY);
}

static int run_one(tw_service *service, tw_timer timer)
{
	(void)service, (void)timer;
	return queue_executor_run_next(&queue);
}

static int drive(tw_service *service, tw_timer timer)
{
	(void)timer;
	tw_service_advance(service, TW_NO_LIMIT);
	return 0;
}

static const struct {
	const char *name;
	int (*make)(tw_service *service, tw_timer timer);
} calls[] = {{"arm near", arm_near}, {"arm sooner", arm_sooner}, {"arm far", arm_far},
	     {"disarm", tw_disarm},  {"cancel", tw_cancel},      {"run", run_one},
	     {"drive", drive}};

/* CHANCES: how often two calls are made beside each other where no points are found. */
enum { CALLS = sizeof calls / sizeof *calls, CHANCES = 3 };

struct made {
	unsigned call;
	int answer;
};

static void make(void *arg)
{
	struct made *made = arg;
	made->answer = calls[made->call].make(rig.service, probe.timer);
}

/* During the run or the release: the answer after it, which changes nothing more. */
static int as_if_after_it(const struct made *made, const struct made *other)
{
	bool cancels = calls[made->call].make == tw_cancel;
	if (made->answer != TW_RUNNING || (!cancels && calls[made->call].make != tw_disarm))
		return made->answer;
	if (calls[other->call].make == tw_cancel && other->answer == TW_CANCELLED)
		return TW_GONE;
	return cancels ? TW_CANCELLED : TW_DISARMED;
}

/* ------------------------------------------------------------ before and after */

static void bring_to(enum state state, bool has_release)
{
	struct tw_task task = {.size = sizeof task,
			       .fn = probe_run,
			       .arg = &probe,
			       .when_ns = TW_NEVER,
			       .release = has_release ? probe_release : NULL,
			       .flags = TW_TASK_PERSISTENT};
	tw_service *service = rig.service;
	probe = PROBE(&rig, 1);
	expect_eq(tw_schedule_task(service, &task, &probe.timer), 0);
	if (state == NEVER_ARMED)
		return;
	uint64_t delay_ns = state == IN_WHEEL_FAR ? 60 * DAY : state == SUBMITTED ? MS : 20 * MS;
	expect_eq(tw_reset(service, probe.timer, delay_ns), 0);
	if (state != IN_LANE)
		rig_advance(&rig, 0);
	if (state == DISARMED || state == DISARMED_DUE)
		expect_eq(tw_disarm(service, probe.timer), TW_CANCELLED);
	if (state == DUE || state == DISARMED_DUE)
		expect_eq(tw_clock_manual_set(rig.clock, rig_now(&rig) + 20 * MS), 0);
	if (state == SUBMITTED)
		rig_advance(&rig, MS);
}

struct outcome {
	int answers[2], runs, runs_later, end;
	bool pending;
	uint64_t left_ns, ran_at_ns;
};

static struct outcome outcome_of(const struct made *first, const struct made *second)
{
	struct outcome outcome = {
	    .answers = {as_if_after_it(first, second), as_if_after_it(second, first)}};
	tw_service *service = rig.service;
	uint64_t now_ns = rig_now(&rig);
	outcome.runs = atomic_load(&probe.runs);
	outcome.pending = tw_remaining(service, probe.timer, &outcome.left_ns) == 0;
	static const uint64_t steps_ns[] = {0, 5 * MS, 10 * MS, 20 * MS, 60 * DAY, 91 * DAY};
	for (size_t i = 0; i < sizeof steps_ns / sizeof *steps_ns; i++) {
		rig_advance_to(&rig, now_ns + steps_ns[i]);
		queue_executor_run_all(&queue);
	}
	outcome.runs_later = atomic_load(&probe.runs);
	outcome.ran_at_ns = outcome.runs_later ? probe.ran_at_ns - now_ns : 0;
	outcome.end = tw_cancel(service, probe.timer);
	return outcome;
}

static bool is_same(const struct outcome *a, const struct outcome *b)
{
	return a->answers[0] == b->answers[0] && a->answers[1] == b->answers[1] &&
	       a->runs == b->runs && a->runs_later == b->runs_later && a->end == b->end &&
	       a->pending == b->pending && a->left_ns == b->left_ns && a->ran_at_ns == b->ran_at_ns;
}

static void print(const char *what, const struct outcome *o)
{
	fprintf(stderr, "%s: %d, %d, runs %d, then %d at %llu, left %llu (%d), end %d\n", what,
		o->answers[0], o->answers[1], o->runs, o->runs_later,
		(unsigned long long)o->ran_at_ns, (unsigned long long)o->left_ns, o->pending,
		o->end);
}

/* ------------------------------------------------------------ pairs */

static struct outcome in_order(enum state state, bool has_release, unsigned a, unsigned b,
			       bool a_first)
{
	struct made first = {.call = a}, second = {.call = b};
	bring_to(state, has_release);
	make(a_first ? &first : &second);
	make(a_first ? &second : &first);
	return outcome_of(&first, &second);
}

static void check_pair(enum state state, bool has_release, unsigned a, unsigned b)
{
	struct outcome one = in_order(state, has_release, a, b, true),
		       other = in_order(state, has_release, a, b, false);
	for (unsigned nth = 1, stopped = true; stopped; nth++) {
		struct made first = {.call = a}, second = {.call = b};
		bring_to(state, has_release);
		stopped =
		    interleave(nth, make, &first, make, &second) && (INTERLEAVES || nth < CHANCES);
		struct outcome found = outcome_of(&first, &second);
		if (is_same(&found, &one) || is_same(&found, &other))
			continue;
		fprintf(stderr, "state %d, %s, at point %u %s\n", state, calls[a].name, nth,
			calls[b].name);
		print("found", &found);
		print("in order", &one);
		print("in the other order", &other);
		cr_assert(false, "the outcome is that of no order");
	}
}

/* As the first call. A cancel is one step; the two long calls often do nothing. */
static bool is_worth_it(unsigned call, int state)
{
	if (calls[call].make == run_one)
		return state == SUBMITTED;
	if (calls[call].make == drive)
		return state == IN_LANE || state == DUE || state == DISARMED_DUE;
	return calls[call].make != tw_cancel;
}

static void check_pairs(bool has_release, int first_state)
{
	for (int state = first_state; state < STATES; state++)
		for (unsigned a = 0; a < CALLS; a++) {
			if (!is_worth_it(a, state))
				continue;
			reopen_on_queue();
			for (unsigned b = 0; b < CALLS; b++)
				if (calls[b].make != arm_sooner)
					check_pair((enum state)state, has_release, a, b);
		}
}

Test(timer_persistent_pairs, without_an_extension_record_are_in_one_order)
{
	check_pairs(false, NEVER_ARMED);
}

Test(timer_persistent_pairs, with_an_extension_record_are_in_one_order)
{
	check_pairs(true, DUE);
}
