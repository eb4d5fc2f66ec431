/*
 * Scheduling: when a timer runs, for delays of every size, and what a schedule leaves behind when
 * it is refused.
 */
#include <errno.h>
#include <stdlib.h>

#include "test/support/rig_suite.h"
#include "test/support/timer_script.h"

TestSuite(timer_schedule, .init = open_rig, .fini = close_rig, .timeout = 30);

Test(timer_schedule, at_past_deadlines_are_due_within_a_tick_between_ticks_too)
{
	rig_advance(&rig, 3 * MS + MS / 3);
	struct probe zero = PROBE(&rig, 1), past = PROBE(&rig, 2);
	probe_schedule(&zero, 0);
	probe_schedule_at(&past, RIG_START_NS);
	rig_advance(&rig, MS);
	expect_eq(zero.runs, 1);
	expect_eq(past.runs, 1);
}

Test(timer_schedule, wants_no_handle_back)
{
	struct probe probe = PROBE(&rig, 1);
	struct tw_period once = rate_of(0, MS, 1);
	struct tw_task task = {.size = sizeof(task), .fn = probe_run, .arg = &probe};
	expect_eq(tw_schedule(rig.service, 0, probe_run, &probe, NULL), 0);
	expect_eq(tw_schedule_at(rig.service, 0, probe_run, &probe, NULL), 0);
	expect_eq(tw_schedule_every(rig.service, &once, probe_run, &probe, NULL), 0);
	expect_eq(tw_schedule_task(rig.service, &task, NULL), 0);
	rig_advance(&rig, MS);
	expect_eq(probe.runs, 4);
}

/* ------------------------------------------------------------ delays of every size */

/* The delay runs at the tick of its end, seen from a clock on a tick and from one between ticks. */
static void expect_exact(uint64_t tick_ns, uint32_t buckets, uint64_t delay_ns, uint64_t offset_ns)
{
	struct tw_service_config cfg = rig_config();
	cfg.tick_ns = tick_ns;
	cfg.buckets = buckets;
	reopen_rig(&cfg);
	rig_advance(&rig, offset_ns);
	struct probe relative = PROBE(&rig, 1), absolute = PROBE(&rig, 2);
	uint64_t deadline_ns = rig_now(&rig) + delay_ns;
	uint64_t due_ns = rig_tick_of(&rig, deadline_ns);
	probe_schedule(&relative, delay_ns);
	probe_schedule_at(&absolute, deadline_ns);
	if (due_ns > rig_now(&rig)) {
		rig_advance_to(&rig, due_ns - 1);
		cr_assert(rig.ran == 0, "tick %lu, delay %lu: early", (unsigned long)tick_ns,
			  (unsigned long)delay_ns);
	}
	rig_advance_to(&rig, due_ns);
	expect_ran_at(&relative, due_ns);
	expect_ran_at(&absolute, due_ns);
}

static void expect_exact_for_sizes(uint64_t tick_ns, uint32_t buckets)
{
	uint64_t wheel_ns = buckets * tick_ns;
	uint64_t delays[] = {
	    1,
	    tick_ns - 1,
	    tick_ns,
	    tick_ns + 1,
	    wheel_ns - tick_ns,
	    wheel_ns - 1,
	    wheel_ns,
	    wheel_ns + 1,
	    wheel_ns + tick_ns,
	    2 * wheel_ns,
	    64 * wheel_ns - tick_ns,
	    64 * wheel_ns,
	    64 * wheel_ns + tick_ns,
	    SECOND,
	    10 * MINUTE,
	    3 * HOUR + 1,
	    5 * DAY,
	    30 * DAY,
	    365 * DAY + 12345,
	};
	for (size_t i = 0; i < sizeof(delays) / sizeof(delays[0]); i++) {
		expect_exact(tick_ns, buckets, delays[i], 0);
		expect_exact(tick_ns, buckets, delays[i], 17 * tick_ns + tick_ns / 3);
	}
}

Test(timer_schedule, delays_of_every_size_end_at_their_tick)
{
	expect_exact_for_sizes(MS, 4096);
	expect_exact_for_sizes(MS, 64); /* the smallest wheel */
	expect_exact_for_sizes(50 * TW_MICROSECOND, 256);
	expect_exact_for_sizes(SECOND, 65536);
}

/* Decades away, across whatever turns over in between, and still exact. */
Test(timer_schedule, a_timer_decades_away_runs_at_its_tick)
{
	struct probe far = PROBE(&rig, 1), near = PROBE(&rig, 2);
	uint64_t delay_ns = 100 * 365 * DAY;
	probe_schedule(&far, delay_ns);
	for (int year = 0; year < 99; year++)
		rig_advance(&rig, 365 * DAY);
	expect_eq(far.runs, 0);
	probe_schedule(&near, MS);
	rig_advance(&rig, MS);
	expect_eq(near.runs, 1);
	rig_advance(&rig, 365 * DAY);
	expect_ran_at(&far, RIG_START_NS + delay_ns);
}

Test(timer_schedule, the_longest_delay_is_accepted_and_one_more_is_refused)
{
	struct probe longest = PROBE(&rig, 1);
	probe_schedule(&longest, TW_MAX_DELAY_NS);
	struct tw_service_stats before = stats_of(rig.service);
	tw_timer none = {.id = 1};
	expect_eq(tw_schedule(rig.service, TW_MAX_DELAY_NS + 1, probe_run, &longest, &none),
		  -ERANGE);
	expect_eq(none.id, 0);
	none.id = 1;
	expect_eq(tw_schedule(rig.service, UINT64_MAX, probe_run, &longest, &none), -ERANGE);
	expect_eq(none.id, 0);
	none.id = 1;
	expect_eq(tw_schedule_at(rig.service, UINT64_MAX, probe_run, &longest, &none), -ERANGE);
	expect_eq(none.id, 0);
	struct tw_service_stats after = stats_of(rig.service);
	expect_same_state(&before, &after);
	expect_eq(after.rejected, before.rejected + 3);
	uint64_t left_ns = 0;
	rig_advance(&rig, 0);
	expect_eq(tw_remaining(rig.service, longest.timer, &left_ns), 0);
	expect_ge(left_ns, TW_MAX_DELAY_NS);
	expect_eq(tw_cancel(rig.service, longest.timer), TW_CANCELLED);
}

static const struct script scripts[] = {
    {"never runs inside the call, and needs no time to pass",
     {{"drive 10; timer 0 in=0 plain; timer 1 at=2 plain; timer 2 at=10 plain; -", "@10 -"},
      {"poll", "run 0, run 1 late=8, run 2, 3"}}},
    {"the callback may read the handle that it was given",
     {{"timer 0 in=0 {self}; timer 1 every=1 count=1 {self} plain; drive 0",
       "run 0, self 0, 0 fired, run 1, self 1"}}},
    {"a task takes a delay or a deadline, and a callback may schedule",
     {{"timer 0 in=3 {timer 2 in=2 plain} plain; timer 1 at=7 plain; drive 10",
       "@3 run 0, @5 run 2, @7 run 1"}}},
};

Test(timer_schedule, follows_the_scripts)
{
	PLAY(&timer_stage, NULL, scripts);
}
