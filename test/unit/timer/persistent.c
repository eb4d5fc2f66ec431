/*
 * Persistent timers: armed, moved, disarmed and armed again by one handle. Armed while they run:
 * persistent_runs.c. What ends them: persistent_ends.c.
 */
#include <errno.h>

#include "test/support/persistent_suite.h"
#include "test/support/rig_suite.h"
#include "test/support/timer_script.h"

TestSuite(timer_persistent, .init = open_rig, .fini = close_rig, .timeout = 60);

/* The entry of the first arming is in the lane, in the wheel, or was met meanwhile. */
Test(timer_persistent, is_armed_again_at_any_time_for_any_time)
{
	static const uint64_t waits_ns[] = {0, MS, 9 * MS, 10 * MS, 11 * MS, 70 * SECOND, 3 * DAY};
	static const uint64_t delays_ns[] = {0,          MS,          3 * MS,   10 * MS, 100 * MS,
					     5 * SECOND, 70 * SECOND, 2 * HOUR, 5 * DAY, 90 * DAY};
	enum { WAITS = sizeof waits_ns / sizeof *waits_ns };
	enum { DELAYS = sizeof delays_ns / sizeof *delays_ns };
	for (size_t first = 0; first < DELAYS; first++)
		for (size_t second = 0; second < DELAYS; second++)
			for (size_t wait = 0; wait < WAITS; wait++) {
				struct probe probe = PROBE(&rig, 1);
				create(&probe, TW_NEVER);
				arm(&probe, delays_ns[first]);
				if (wait % 2)
					rig_advance(&rig, 0);
				bool runs = wait % 2 && first == 0;
				expect_disarm(&probe, runs ? TW_DISARMED : TW_CANCELLED);
				rig_advance(&rig, waits_ns[wait]);
				expect_eq(probe.runs, runs);
				arm(&probe, delays_ns[second]);
				uint64_t due_ns = rig_now(&rig) + delays_ns[second];
				rig_advance(&rig, delays_ns[second] / 2);
				rig_advance_to(&rig, due_ns);
				expect_eq(probe.runs, runs + 1);
				expect_eq(probe.ran_at_ns, due_ns);
				expect_eq(tw_cancel(rig.service, probe.timer), TW_CANCELLED);
			}
}

/* ------------------------------------------------------------ entries */

/* A connection whose timeout is armed and disarmed with each request. */
Test(timer_persistent, that_is_toggled_for_ever_needs_one_entry)
{
	struct probe probe = PROBE(&rig, 1);
	create(&probe, TW_NEVER);
	for (int i = 0; i < 300000; i++) {
		arm(&probe, MINUTE);
		if (i % 3 == 0)
			rig_advance(&rig, MS);
		expect_disarm(&probe, TW_CANCELLED);
		if (i % 7 == 0)
			rig_advance(&rig, MS);
		if (i % 1000 == 0)
			expect_le(stats_of(rig.service).entries, 1);
	}
	expect_eq(probe.runs, 0);
	/* the first, and one each time that the entry was met while the timer was disarmed */
	expect_le(stats_of(rig.service).resets_eager, 5);
	arm(&probe, MINUTE);
	rig_advance(&rig, MINUTE);
	expect_eq(probe.runs, 1);
}

/* Disarmed for longer than the deadline bits tell apart, and a clock that leaps over all levels. */
Test(timer_persistent, that_was_disarmed_for_years_is_not_misread)
{
	static const uint64_t spans_ns[] = {DAY, 5 * DAY, 37 * DAY, 400 * DAY, 4000 * DAY};
	struct probe probe = PROBE(&rig, 1), still = PROBE(&rig, 2);
	create(&probe, TW_NEVER);
	create(&still, HOUR);
	expect_disarm(&still, TW_CANCELLED);
	int runs = 0;
	for (size_t i = 0; i < sizeof spans_ns / sizeof *spans_ns; i++)
		for (uint64_t delay_ns = MS; delay_ns < 10000 * DAY; delay_ns *= 13) {
			arm(&probe, delay_ns);
			expect_disarm(&probe, TW_CANCELLED);
			expect_eq(tw_clock_manual_set(rig.clock, rig_now(&rig) + spans_ns[i]), 0);
			arm(&probe, 3 * MS);
			uint64_t due_ns = rig_now(&rig) + 3 * MS;
			rig_advance_to(&rig, due_ns - 1);
			expect_eq(probe.runs, runs);
			rig_advance_to(&rig, due_ns);
			expect_eq(probe.runs, ++runs);
		}
	expect_eq(still.runs, 0);
	arm(&still, MS);
	rig_advance(&rig, MS);
	expect_eq(still.runs, 1);
}

static const struct script scripts[] = {
    {"runs each time it is armed",
     "",
     {{"timer 0 never persistent plain {self}; drive 3600000; reset 0 by=10; drive 9", ""},
      {"drive 1; drive 90", "@3600010 run 0, self 0"},
      {"reset 0 by=10; drive 100; cancel 0", "@3600110 run 0, @3600200 CANCELLED"},
      {"stats scheduled fired runs", "scheduled=1, fired=0, runs=2"}}},
    {"is moved while it is armed",
     "",
     {{"timer 0 in=10 persistent; reset 0 by=1000; reset 0 by=20; reset 0 by=34560000000", ""},
      {"reset 0 by=30; earlier 0 at=40; earlier 0 at=15; drive 3600000", "KEPT, @15 run 0"},
      {"earlier 0 by=9; reset 0 at=0; drive 1; cancel 0",
       "@3600000 run 0 late=3600000, @3600001 0 cancelled, CANCELLED"}}},
    {"is armed up to the end of the range",
     "",
     {{"timer 0 never persistent plain; reset 0 by=4611686018427; drive 86400000; left 0",
       "@86400000 left 4611599618427"},
      {"disarm 0; reset 0 by=18446744073709; disarm 0; drive 86400000; cancel 0",
       "CANCELLED, ERANGE, DISARMED, @172800000 CANCELLED"}}},
    {"has the options of a task, and its fate",
     "",
     {{"timer 0 never persistent other; reset 0 by=1000; hold; drive 1100", ""},
      {"next; disarm 0; reset 0 by=9; hold; drive 10", "@1100 run 0 late=100, DISARMED"},
      {"next; cancel 0", "@1110 run 0 late=1, 0 cancelled, CANCELLED"}}},
    {"ends before the completion of its group",
     "",
     {{"group 0; timer 0 never persistent group=0; then 0; drive 1", "0 cancelled, done 0"}}},
    {"is not armed in the run of a close",
     "",
     {{"timer 0 in=9 persistent {reset 0 by=1}; close run", "run 0 closing, ESHUTDOWN, 0 fired"}}},
};

Test(timer_persistent, follows_the_scripts)
{
	PLAY(&timer_stage, NULL, scripts);
}
