/*
 * Each two calls on a timer, in each state: the second one is made at each point of the first. What
 * they answer, and what follows, is that of one order of the two, or of the one inside a callback
 * or release of the other.
 */
#include <errno.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

#include "wheel/run/run.h"
#include "test/support/interleave.h"
#include "test/support/rig_suite.h"

TestSuite(timer_pairs, .init = open_rig, .fini = close_rig, .timeout = 300);

static struct probe probe, follower; /* the other one: of the slot's next timer */
static uint64_t base_ns;             /* the clock when the state was reached */
static bool closes;
static atomic_bool answered_early, armed_itself;

/* ------------------------------------------------------------ the calls */

/* Of a run that waits on a thread of its own. */
static pthread_t runner;
static sem_t inside, leave;
static atomic_bool runs;

static int64_t finish(void)
{
	if (!runs)
		return 0;
	sem_post(&leave);
	runs = false;
	return pthread_join(runner, NULL);
}

static int64_t look(tw_timer timer)
{
	uint64_t left_ns = 0;
	int r = tw_remaining(rig.service, timer, &left_ns);
	return r ? r : (int64_t)left_ns;
}

/* As a closed executor ends what it has. */
static int64_t end_ticket(void)
{
	tw_batch *ticket = queue.tickets[queue.head++];
	tw__batch_end_all(ticket);
	return tw_run_one(ticket);
}

/* Another timer gets the slot: a plain one, or a series. */
static int64_t replace(bool series)
{
	int64_t answer = tw_cancel(rig.service, probe.timer);
	if (!series && answer == TW_CANCELLED)
		probe_schedule(&follower, 400 * DAY);
	while (series && (uint32_t)follower.timer.id != (uint32_t)probe.timer.id) {
		tw_cancel(rig.service, follower.timer);
		probe_schedule_every(&follower, rate_of(SECOND, 7 * SECOND, 0));
	}
	return answer;
}

static int64_t call(char key)
{
	tw_service *service = rig.service;
	tw_timer timer = probe.timer;
	int64_t answer;
	switch (key) {
	case 'n': /* near */
		return tw_reset(service, timer, 10 * MS);
	case 's': /* sooner */
		return tw_reset_earlier(service, timer, 5 * MS);
	case 'f': /* far */
		return tw_reset(service, timer, 90 * DAY);
	case 'S': /* sooner, and far: not after '@' */
		return tw_reset_earlier(service, timer, 40 * DAY);
	case '@':
		return tw_reset_at(service, timer, base_ns + 20 * HOUR);
	case '0':
		return tw_reset(service, timer, 0);
	case 'p':
		return tw_set_period(service, timer, SECOND);
	case 'd':
		return tw_disarm(service, timer);
	case 'c':
		return tw_cancel(service, timer);
	case 'R':
	case 'Q':
		return replace(key == 'Q');
	case 'l':
		return look(timer);
	case 'r':
		return queue_executor_run_next(&queue);
	case 'D': /* the driver comes */
		tw_service_advance(service, TW_NO_LIMIT);
		return 0;
	case 'm': /* it meets the entry an hour later */
		tw_clock_manual_advance_by(rig.clock, base_ns + HOUR - rig_now(&rig));
		queue_executor_run_all(&queue);
		return 0;
	case 'E':
		return end_ticket();
	case 'F':
		return finish();
	default: /* a close: no release comes after an answer of 0 */
		answer = tw_service_close(service, TW_CLOSE_DROP, 0);
		answered_early = answered_early || (answer == 0 && !probe.releases);
		return answer;
	}
}

/* ------------------------------------------------------------ the states */

enum kind { PLAIN, SERIES, PERSISTENT };

/* What is done with a new timer, in this order. */
enum { FILED = 1, DISARMED = 2, DRIVEN = 4, RUNS = 8 /* on another thread */ };

struct state {
	const char *name;
	uint64_t delay_ns, moved_ns; /* scheduled, then moved to; TW_NEVER: not armed */
	unsigned flags;
	uint64_t passed_ns; /* after that the driver comes, if DRIVEN */
};

static const struct state never_armed = {"never armed", TW_NEVER, 0, 0, 0},
			  in_lane = {"in lane", 20 * MS, 0, 0, 0},
			  far = {"far", 60 * DAY, 0, FILED, 0},
			  disarmed = {"disarmed", 20 * MS, 0, FILED | DISARMED, 0},
			  due = {"due", 20 * MS, 0, FILED, 20 * MS},
			  disarmed_due = {"disarmed due", 20 * MS, 0, FILED | DISARMED, 20 * MS},
			  submitted = {"submitted", MS, 0, FILED | DRIVEN, MS},
			  was_far = {"was far", 400 * DAY, HOUR, FILED, 0},
			  long_due = {"long due", 400 * DAY, 0, FILED | DRIVEN, 800 * DAY},
			  running = {"running", MS, 0, FILED | DRIVEN | RUNS, MS};

struct row {
	const struct state *state;
	enum kind kind;
	bool has_release, rearms;
	const char *firsts, *seconds; /* calls, by their letters */
};

/* A call as the first one only where it has something to do, and more than one step. */
static const struct row rows[] = {
    {&never_armed, PERSISTENT, false, false, "nsfd", "nfdcrD"},
    {&in_lane, PERSISTENT, false, false, "nsfdD", "nfdcrD"},
    {&far, PERSISTENT, false, false, "nsfd", "nfdcrD"},
    {&disarmed, PERSISTENT, false, false, "nsfd", "nfdcrD"},
    {&due, PERSISTENT, false, false, "nsfdD", "nfdcrD"},
    {&disarmed_due, PERSISTENT, false, false, "nsfdD", "nfdcrD"},
    {&submitted, PERSISTENT, false, false, "nsfdr", "nfdcrD"},
    {&submitted, PERSISTENT, false, false, "E", "d"},
    {&due, PERSISTENT, true, false, "nsfdD", "nfdcrD"},
    {&disarmed_due, PERSISTENT, true, false, "nsfdD", "nfdcrD"},
    {&submitted, PERSISTENT, true, false, "nsfdr", "nfdcrD"},
    {&submitted, PERSISTENT, true, false, "E", "d"},
    {&submitted, PERSISTENT, true, true, "r", "fX"},
    {&running, PERSISTENT, false, true, "f", "F"},
    /* far deadlines are beside the word (wheel/slot/word.h, WORD6) */
    {&was_far, PLAIN, false, false, "@", "lmR"},
    {&far, PLAIN, false, false, "Sf", "@c"},
    {&long_due, PLAIN, false, false, "r", "@"},
    {&submitted, PLAIN, true, true, "r", "Xc"},
    {&in_lane, PLAIN, true, false, "c", "X"},
    /* a late run of a series stands for one instant, and counts what it missed */
    {&submitted, SERIES, false, false, "r0", "r0"},
    {&never_armed, SERIES, false, false, "p", "Q"},
};

static struct row made_for;

static void reopen(void)
{
	struct probe first = PROBE(&rig, 0);
	reopen_on_queue();
	/* the thread's first run takes memory, which is long in single steps */
	probe_schedule(&first, 0);
	rig_advance(&rig, MS);
	expect_eq(queue_executor_run_next(&queue), 1);
}

static void *run_on_thread(void *unused)
{
	queue_executor_run_next(&queue);
	return unused;
}

/* The second call of a pair, if it is to be made in the callback or release of the first. */
static enum { BESIDE, AT_BEGIN, AT_END, IN_RELEASE, PLACES } place;
static void make_inside(void);

static void act(struct probe *p)
{
	if (place == AT_BEGIN)
		make_inside();
	if (made_for.rearms)
		p->answer = tw_reset(p->rig->service, p->timer, HOUR);
	armed_itself = true;
	if (made_for.state->flags & RUNS) {
		sem_post(&inside);
		while (sem_wait(&leave) == -1)
			;
	}
	if (place == AT_END)
		make_inside();
}

static void act_in_release(struct probe *p)
{
	if (place == IN_RELEASE)
		make_inside();
}

static void bring_to(const struct row *row)
{
	const struct state *state = row->state;
	struct tw_period period = rate_of(SECOND, SECOND, 0);
	made_for = *row;
	if (closes || rig_now(&rig) > INT64_MAX / 2) /* a clock's range is finite */
		reopen();
	probe = PROBE(&rig, 1);
	probe.act = act;
	armed_itself = false;
	probe.act_in_release = act_in_release;
	struct tw_task task = probe_task(&probe);
	task.release = row->has_release ? probe_release : NULL;
	task.flags = row->kind == PERSISTENT ? TW_TASK_PERSISTENT : 0;
	task.period = row->kind == SERIES ? &period : NULL;
	task.when_ns = row->kind == SERIES       ? 0
		       : row->kind == PERSISTENT ? TW_NEVER
						 : state->delay_ns;
	probe_schedule_task(&probe, &task);
	if (row->kind == PERSISTENT && state->delay_ns != TW_NEVER)
		expect_eq(tw_reset(rig.service, probe.timer, state->delay_ns), 0);
	if (state->moved_ns)
		expect_eq(tw_reset(rig.service, probe.timer, state->moved_ns), 0);
	if (state->flags & FILED)
		rig_advance(&rig, 0);
	if (state->flags & DISARMED)
		expect_eq(tw_disarm(rig.service, probe.timer), TW_CANCELLED);
	if (row->kind == SERIES && state->flags & DRIVEN) {
		rig_advance(&rig, SECOND);
		rig_advance(&rig, 3500 * MS);
	}
	expect_eq(tw_clock_manual_set(rig.clock, rig_now(&rig) + state->passed_ns), 0);
	if (state->flags & DRIVEN)
		rig_advance(&rig, 0);
	if (state->flags & RUNS) {
		expect_eq(pthread_create(&runner, NULL, run_on_thread, NULL), 0);
		runs = true;
		while (sem_wait(&inside) == -1)
			;
	}
	base_ns = rig_now(&rig);
	follower = PROBE(&rig, 2);
	answered_early = false;
}

/* ------------------------------------------------------------ the outcome */

enum { LIVES = 11, FACTS = 14 };

/* What is compared, in the order of outcome_of. */
struct outcome {
	int64_t fact[FACTS];
};

struct made {
	char call;
	int64_t answer;
	bool is_made, after; /* what the callback does */
};

static void make(void *arg)
{
	struct made *made = arg;
	made->after = armed_itself;
	made->answer = call(made->call);
	made->is_made = true;
}

/* It ends by calls that end timers alone, not with its executor. */
static void expect_disarmed_lives(const struct made *made, const struct made *other,
				  const struct outcome *outcome)
{
	if (made->is_made && made->call == 'd' && made->answer == TW_CANCELLED &&
	    other->call != 'c')
		expect_eq(outcome->fact[LIVES], true);
}

static struct outcome outcome_of(const struct made *first, const struct made *second)
{
	static const uint64_t steps_ns[] = {0,    5 * MS, 10 * MS,  20 * MS,  SECOND / 2, SECOND,
					    HOUR, DAY,    60 * DAY, 91 * DAY, 400 * DAY};
	tw_service *service = rig.service;
	struct tw_service_stats stats = stats_of(service);
	uint64_t now_ns = rig_now(&rig);
	int64_t ran_at_ns = 0;
	place = BESIDE;
	probe.act = probe.act_in_release = NULL;
	struct outcome outcome = {{first->answer, second->answer, probe.answer, probe.runs,
				   (int64_t)probe.overruns, look(probe.timer), look(follower.timer),
				   (int64_t)(stats.pending + stats.disarmed), answered_early}};
	/* beside a thread that really runs, a close waits a little, perhaps until that returns */
	if (!INTERLEAVES && closes && second->answer == -ETIMEDOUT)
		outcome.fact[1] = 0;
	if (closes) {
		queue_executor_run_all(&queue);
		expect_eq(tw_service_close(service, TW_CLOSE_DROP, TW_FOREVER), 0);
	}
	for (size_t i = 0; i < sizeof steps_ns / sizeof *steps_ns && !closes; i++) {
		if (made_for.kind == SERIES && i > 5)
			break; /* it would run on and on */
		rig_advance_to(&rig, now_ns + steps_ns[i]);
		queue_executor_run_all(&queue);
		if (probe.runs && !ran_at_ns)
			ran_at_ns = 1 + (int64_t)(probe.ran_at_ns - now_ns);
	}
	outcome.fact[9] = probe.runs;
	outcome.fact[10] = ran_at_ns;
	outcome.fact[LIVES] = tw_cancel(service, probe.timer) == TW_CANCELLED;
	outcome.fact[12] = probe.releases;
	outcome.fact[13] = look(follower.timer);
	tw_cancel(service, follower.timer);
	expect_disarmed_lives(first, second, &outcome);
	expect_disarmed_lives(second, first, &outcome);
	return outcome;
}

/* ------------------------------------------------------------ pairs */

static struct made *within;
static unsigned points;

static void *make_on_thread(void *made)
{
	make(made);
	return NULL;
}

static void make_inside(void)
{
	pthread_t thread;
	if (!within->is_made && pthread_create(&thread, NULL, make_on_thread, within) == 0)
		pthread_join(thread, NULL);
}

/* The orders that are possible: how many. In some the second call comes at the begin of the run. */
static unsigned in_order(const struct row *row, char a, char b, struct outcome *orders,
			 bool *begins)
{
	unsigned n = 0;
	for (int i = 0; i < 2 * PLACES; i++) {
		struct made first = {.call = a}, second = {.call = b};
		struct made *outer = i % 2 ? &second : &first, *inner = i % 2 ? &first : &second;
		bring_to(row);
		place = i / 2;
		within = inner;
		make(outer);
		if (place == BESIDE)
			make(inner);
		finish();
		begins[n] = inner == &second && i / 2 == AT_BEGIN;
		orders[n] = outcome_of(&first, &second);
		n += inner->is_made;
	}
	return n;
}

static void check_pair(const struct row *row, char a, char b)
{
	struct outcome orders[2 * PLACES + 1];
	bool begins[2 * PLACES];
	closes = b == 'X';
	reopen();
	unsigned n = in_order(row, a, b, orders, begins), nth = 1;
	for (bool stopped = true; stopped; nth++) {
		struct made first = {.call = a}, second = {.call = b};
		bring_to(row);
		stopped = interleave(nth, make, &first, make, &second) && (INTERLEAVES || nth < 3);
		struct outcome found = outcome_of(&first, &second);
		unsigned i = 0;
		while (i < n && ((begins[i] && second.after) ||
				 memcmp(&found, &orders[i], sizeof found) != 0))
			i++;
		if (i < n)
			continue;
		fprintf(stderr, "%s, kind %d: %c, at point %u %c\n", row->state->name, row->kind, a,
			nth, b);
		i = 0; /* the orders, then what was found */
		for (orders[n] = found; i < (n + 1) * FACTS; i++)
			fprintf(stderr, "%lld%c", (long long)orders[i / FACTS].fact[i % FACTS],
				i % FACTS == FACTS - 1 ? '\n' : ' ');
		cr_assert(false, "the outcome is that of no order");
	}
	points += nth - 1;
}

static void check_rows(enum kind kind)
{
	sem_init(&inside, 0, 0);
	sem_init(&leave, 0, 0);
	for (const struct row *row = rows; row < rows + sizeof rows / sizeof *rows; row++) {
		if (row->kind != kind)
			continue;
		points = 0;
		for (const char *a = row->firsts; *a; a++)
			for (const char *b = row->seconds; *b; b++)
				check_pair(row, *a, *b);
		expect_ge(points, INTERLEAVES ? 3 : 0);
	}
	reopen_rig(NULL);
}

Test(timer_pairs, on_plain_timers_and_series_are_in_one_order)
{
	check_rows(PLAIN);
	check_rows(SERIES);
}

Test(timer_pairs, on_persistent_timers_are_in_one_order)
{
	check_rows(PERSISTENT);
}
