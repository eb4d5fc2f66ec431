/*
 * What a fixed-rate series does about instants that are past: skip, coalesce, burst; and a series
 * of fixed delay. A table has stalls of several lengths, of a series with a period of one second
 * whose first instant is at one second.
 */
#include "test/support/rig_suite.h"
#include "test/support/timer_script.h"

TestSuite(timer_missed, .init = open_rig, .fini = close_rig, .timeout = 30);

enum { SKIP, COALESCE, BURST, DELAY, KINDS };

/* What a series of one kind does at the end of the stall, and when it runs after that. */
struct expected {
	size_t runs;       /* at the end of the stall */
	uint64_t overruns; /* of the first of them */
	uint64_t next_ms;  /* the first run after the stall */
	uint64_t next_overruns;
};

struct row {
	uint64_t end_ms; /* of the stall */
	struct expected of[KINDS];
};

/* The clock stands from 0 on: the first run comes late. */
static const struct row before_a_run[] = {
    {1000, {{1, 0, 2000, 0}, {1, 0, 2000, 0}, {1, 0, 2000, 0}, {1, 0, 2000, 0}}},
    {1001, {{1, 0, 2000, 0}, {1, 0, 2000, 0}, {1, 0, 2000, 0}, {1, 0, 2001, 0}}},
    {1999, {{1, 0, 2000, 0}, {1, 0, 2000, 0}, {1, 0, 2000, 0}, {1, 0, 2999, 0}}},
    {2000, {{1, 1, 3000, 0}, {1, 1, 3000, 0}, {2, 0, 3000, 0}, {1, 0, 3000, 0}}},
    {2999, {{1, 1, 3000, 0}, {1, 1, 3000, 0}, {2, 0, 3000, 0}, {1, 0, 3999, 0}}},
    {3000, {{1, 2, 4000, 0}, {1, 2, 4000, 0}, {3, 0, 4000, 0}, {1, 0, 4000, 0}}},
    {10000, {{1, 9, 11000, 0}, {1, 9, 11000, 0}, {10, 0, 11000, 0}, {1, 0, 11000, 0}}},
    {10500, {{1, 9, 11000, 0}, {1, 9, 11000, 0}, {10, 0, 11000, 0}, {1, 0, 11500, 0}}},
    {3600500,
     {{1, 3599, 3601000, 0}, {1, 3599, 3601000, 0}, {3600, 0, 3601000, 0}, {1, 0, 3601500, 0}}},
};

/* The first run begins at 1000, and returns at the end of the stall. */
static const struct row in_a_run[] = {
    {1000, {{0, 0, 2000, 0}, {0, 0, 2000, 0}, {0, 0, 2000, 0}, {0, 0, 2000, 0}}},
    {1500, {{0, 0, 2000, 0}, {0, 0, 2000, 0}, {0, 0, 2000, 0}, {0, 0, 2500, 0}}},
    {2000, {{0, 0, 3000, 1}, {1, 0, 3000, 0}, {1, 0, 3000, 0}, {0, 0, 3000, 0}}},
    {2999, {{0, 0, 3000, 1}, {1, 0, 3000, 0}, {1, 0, 3000, 0}, {0, 0, 3999, 0}}},
    {3000, {{0, 0, 4000, 2}, {1, 1, 4000, 0}, {2, 0, 4000, 0}, {0, 0, 4000, 0}}},
    {10000, {{0, 0, 11000, 9}, {1, 8, 11000, 0}, {9, 0, 11000, 0}, {0, 0, 11000, 0}}},
    {10500, {{0, 0, 11000, 9}, {1, 8, 11000, 0}, {9, 0, 11000, 0}, {0, 0, 11500, 0}}},
    {3600500,
     {{0, 0, 3601000, 3599}, {1, 3598, 3601000, 0}, {3599, 0, 3601000, 0}, {0, 0, 3601500, 0}}},
};

#define ROWS(table) (sizeof(table) / sizeof *(table))

static struct tw_period policy_of(uint64_t first_ns, uint64_t period_ns,
				  enum tw_missed_policy missed)
{
	struct tw_period period = rate_of(first_ns, period_ns, 0);
	period.missed = missed;
	return period;
}

static struct tw_period period_of(int kind)
{
	static const enum tw_missed_policy policies[] = {TW_MISSED_SKIP, TW_MISSED_COALESCE,
							 TW_MISSED_BURST};
	return kind == DELAY ? delay_of(SECOND, SECOND, 0)
			     : policy_of(SECOND, SECOND, policies[kind]);
}

static void set_clock(uint64_t at_ms)
{
	expect_eq(tw_clock_manual_set(rig.clock, RIG_START_NS + at_ms * MS), 0);
}

static void turn_at(uint64_t at_ms)
{
	set_clock(at_ms);
	for (int idle = 0; idle < 3; idle++)
		if (tw_service_advance(rig.service, TW_NO_LIMIT) + queue_executor_run_all(&queue) >
		    0)
			idle = -1;
}

/* The stall has ended, and `before` runs had begun by then. */
static void expect_after(const struct probe *probe, size_t before, uint64_t end_ms,
			 const struct expected *expected)
{
	turn_at(end_ms);
	size_t after = before + expected->runs;
	expect_eq(rig.ran, after);
	for (size_t i = before; i < rig.ran; i++) {
		expect_eq(rig.events[i].at_ns, RIG_START_NS + end_ms * MS);
		expect_eq(rig.events[i].overruns, i == before ? expected->overruns : 0);
	}
	for (size_t next = 0; next < 3; next++) {
		uint64_t next_ms = expected->next_ms + next * 1000;
		turn_at(next_ms - 1);
		expect_eq(rig.ran, after + next);
		turn_at(next_ms);
		expect_eq(rig.ran, after + next + 1);
		expect_eq(rig.events[after + next].overruns, next ? 0 : expected->next_overruns);
	}
	expect_eq(stats_of(rig.service).overruns, probe->overruns);
}

static uint64_t return_at_ms;

static void return_late_once(struct probe *probe)
{
	if (atomic_load(&probe->runs) == 0)
		tw_clock_manual_set(probe->rig->clock, RIG_START_NS + return_at_ms * MS);
}

/* Where the stall is: of the driver, of the executor, of a run. */
enum place { DRIVER, EXECUTOR, RUN };

static void expect_row(enum place place, const struct row *row, int kind)
{
	struct probe probe = PROBE(&rig, 1);
	cr_log_info("place %d, stall until %llu, kind %d", place, (unsigned long long)row->end_ms,
		    kind);
	if (place != EXECUTOR)
		reopen_rig(NULL);
	else
		reopen_on_queue();
	probe_schedule_every(&probe, period_of(kind));
	if (place == RUN) {
		probe.act = return_late_once;
		return_at_ms = row->end_ms;
		set_clock(1000);
		expect_eq(tw_service_advance(rig.service, TW_NO_LIMIT), 1);
	}
	if (place == EXECUTOR) {
		rig_advance(&rig, SECOND);
		expect_eq(queue_executor_waiting(&queue), 1);
	}
	expect_after(&probe, place == RUN, row->end_ms, &row->of[kind]);
	expect_eq(tw_cancel(rig.service, probe.timer), TW_CANCELLED);
}

static void expect_table(enum place place, const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		for (int kind = SKIP; kind < KINDS; kind++)
			expect_row(place, &rows[i], kind);
}

Test(timer_missed, stalls_before_a_run_follow_the_table)
{
	expect_table(DRIVER, before_a_run, ROWS(before_a_run));
}

Test(timer_missed, stalls_of_the_executor_follow_the_table)
{
	expect_table(EXECUTOR, before_a_run, ROWS(before_a_run));
}

Test(timer_missed, stalls_in_a_run_follow_the_table)
{
	expect_table(RUN, in_a_run, ROWS(in_a_run));
}

/* What counts is the clock as its own run begins, not as the tick begins. */
Test(timer_missed, stalls_of_a_callback_before_it_in_the_same_tick_count)
{
	static const uint64_t stalls_ms[] = {1500, 2000, 10500};
	for (int i = 0; i < 3; i++) {
		reopen_rig(NULL);
		struct probe other = PROBE(&rig, 1), probe = PROBE(&rig, 2);
		other.act = return_late_once;
		return_at_ms = stalls_ms[i];
		probe_schedule(&other, SECOND);
		probe_schedule_every(&probe, period_of(COALESCE));
		turn_at(1000);
		expect_eq(rig.ran, 2);
		expect_eq(rig.events[1].id, 2);
		expect_eq(rig.events[1].overruns, stalls_ms[i] / 1000 - 1);
	}
}

/* ------------------------------------------------------------ without a table */

Test(timer_missed, instants_of_ten_years_cost_one_run)
{
	struct probe skip = PROBE(&rig, 1), coalesce = PROBE(&rig, 2);
	probe_schedule_every(&skip, policy_of(MS, MS, TW_MISSED_SKIP));
	probe_schedule_every(&coalesce, policy_of(MS, MS, TW_MISSED_COALESCE));
	turn_at(3650 * DAY / MS);
	expect_eq(skip.runs, 1);
	expect_eq(coalesce.runs, 1);
	expect_eq(coalesce.overruns, 3650 * DAY / MS - 1);
	rig_advance(&rig, MS);
	expect_eq(skip.runs + skip.overruns, 3650 * DAY / MS + 1);
	expect_eq(coalesce.runs, 2);
}

/* Else the second run would come less than a period after the deadline of the reset. */
Test(timer_missed, a_reset_within_the_tick_moves_the_phase_too)
{
	struct probe probe = PROBE(&rig, 1);
	const uint64_t tenth = MS / 10, deadline_ns = RIG_START_NS + 109 * tenth;
	probe_schedule_every(&probe, rate_of(102 * tenth, 97 * tenth, 0));
	expect_eq(tw_reset_at(rig.service, probe.timer, deadline_ns), 0);
	rig_advance(&rig, 25 * MS);
	expect_eq(probe.runs, 2);
	expect_eq(rig.events[0].at_ns, RIG_START_NS + 11 * MS);
	expect_ge(rig.events[1].at_ns, deadline_ns + 97 * tenth);
	expect_eq(rig.events[1].at_ns, RIG_START_NS + 21 * MS);
	expect_eq(tw_cancel(rig.service, probe.timer), TW_CANCELLED);
}

static const struct script scripts[] = {
    {"cost nothing while the series keeps up",
     {{"timer 0 first=7 every=10 plain; timer 1 first=7 every=10 plain coalesce", ""},
      {"timer 2 first=7 every=10 plain burst; drive 30; stats runs overruns",
       "@7 run 0, run 1, run 2, @17 run 0, run 1, run 2, @27 run 0, run 1, run 2, @30 runs=9, "
       "overruns=0"}}},
    {"count runs",
     {{"timer 0 first=10 every=10 count=3 burst; timer 1 first=10 every=10 count=3 coalesce", ""},
      {"pass 95; poll; poll; poll",
       "@95 run 0 late=85, run 1 late=5 overruns=8, 2, run 0 late=75, 1, run 0 late=65, 0 fired, "
       "1"},
      {"drive 15", "@100 run 1, @110 run 1, 1 fired"}}},
    {"of a series that began before the service get their runs",
     {{"timer 0 at=-45 every=10 burst plain; drive 4; stats runs",
       "run 0 late=45, run 0 late=35, run 0 late=25, run 0 late=15, run 0 late=5, @4 runs=5"},
      {"drive 1", "@5 run 0"}}},
    {"go through the queue run by run",
     {{"given queued; timer 0 first=10 every=10 burst; hold; drive 95; waiting", "@95 1 wait"},
      {"hold; next; poll; waiting", "run 0 late=85, 1, 1 wait"},
      {"hold; next; poll; waiting", "run 0 late=75, 1, 1 wait"},
      {"timer 1 in=0 plain; hold; poll; waiting; cancel 0; pump",
       "1, 2 wait, 0 cancelled, CANCELLED, run 1"}}},
    {"are not caught up after a reset, which moves the phase",
     {{"timer 0 first=10 every=10 burst plain; drive 5; pass 90; reset 0 by=7; drive 17",
       "@102 run 0, @112 run 0"}}},
};

Test(timer_missed, follow_the_scripts)
{
	PLAY(&timer_stage, NULL, scripts);
}
