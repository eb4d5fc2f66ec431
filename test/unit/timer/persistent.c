/*
 * Persistent timers: armed, moved, disarmed and armed again by one handle, also while they run or
 * wait to run. Each answer: outcomes.c.
 */
#include <errno.h>

#include "wheel/core/service.h"
#include "wheel/timer/schedule.h"
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
     {{"timer 0 never persistent plain {self}; drive 3600000; reset 0 by=10; drive 9", ""},
      {"drive 1; drive 90", "@3600010 run 0, self 0"},
      {"reset 0 by=10; drive 100; cancel 0", "@3600110 run 0, @3600200 CANCELLED"},
      {"stats scheduled fired runs", "scheduled=1, fired=0, runs=2"}}},
    {"is moved while it is armed",
     {{"timer 0 in=10 persistent; reset 0 by=1000; reset 0 by=20; reset 0 by=34560000000", ""},
      {"reset 0 by=30; earlier 0 by=40; earlier 0 by=15; drive 3600000", "KEPT, @15 run 0"},
      {"earlier 0 by=9; reset 0 at=0; drive 1; cancel 0",
       "@3600000 run 0 late=3600000, @3600001 0 cancelled, CANCELLED"}}},
    {"is armed up to the end of the range",
     {{"timer 0 never persistent plain; reset 0 by=4611686018427; drive 86400000; left 0",
       "@86400000 left 4611599618427"},
      {"disarm 0; reset 0 by=18446744073709; disarm 0; drive 86400000; cancel 0",
       "CANCELLED, ERANGE, DISARMED, @172800000 CANCELLED"}}},
    {"has the options of a task, and its fate",
     {{"timer 0 never persistent other; reset 0 by=1000; hold; drive 1100", ""},
      {"next; disarm 0; reset 0 by=9; hold; drive 10", "@1100 run 0 late=100, DISARMED"},
      {"next; cancel 0", "@1110 run 0 late=1, 0 cancelled, CANCELLED"}}},
    {"ends before the completion of its group",
     {{"group 0; timer 0 never persistent group=0; then 0; drive 1", "0 cancelled, done 0"}}},
    {"is not armed in the run of a close",
     {{"timer 0 in=9 persistent {reset 0 by=1}; close run", "run 0 closing, ESHUTDOWN, 0 fired"}}},
    {"may arm itself",
     {{"timer 0 in=10 persistent plain times=3 {reset 0 by=10}; drive 100",
       "@10 run 0, @20 run 0, @30 run 0, @40 run 0"},
      {"disarm 0; cancel 0", "@100 DISARMED, CANCELLED"}}},
    {"may take back that it has armed itself",
     {{"timer 0 in=10 persistent plain {reset 0 by=10; disarm 0}; drive 100", "@10 run 0, RUNNING"},
      {"disarm 0; cancel 0", "@100 DISARMED, CANCELLED"}}},
    {"may arm itself for the earlier one",
     {{"timer 0 in=1 persistent plain {reset 0 by=10; earlier 0 by=20; earlier 0 by=5}", ""},
      {"drive 100; cancel 0", "@1 run 0, KEPT, @6 run 0, @100 CANCELLED"}}},
    /* while its ticket is out: run, or given back; armed again before, or after */
    {"is disarmed while it waits for its executor",
     {{"given queued; timer 0 in=1 persistent plain; hold; drive 1; waiting; disarm 0",
       "@1 1 wait, CANCELLED"},
      {"next; drive 9; reset 0 by=20; advance 30", "@30 run 0"},
      {"reset 0 by=1; hold; drive 1; disarm 0", "@41 CANCELLED"},
      {"reset 0 by=20; next; advance 30", "@61 run 0"},
      {"reset 0 by=1; hold; drive 1; disarm 0", "@72 CANCELLED"},
      {"give_back; drive 0; reset 0 by=20; advance 30", "@92 run 0"},
      {"reset 0 by=1; hold; drive 1; disarm 0", "@103 CANCELLED"},
      {"reset 0 by=20; give_back; advance 30", "@123 run 0"},
      {"cancel 0", "@133 CANCELLED"}}},
    {"ends with its service, and has run if it was armed",
     {{"timer 0 3 never persistent; timer 1 4 in=1 persistent; drive 1", "@1 run 1, run 4"},
      {"reset 3 4 by=9; disarm 3; timer 2 in=9 persistent; timer 5 in=9 persistent plain",
       "CANCELLED"},
      {"close drain; close run; stats pending disarmed dropped fired",
       "EDEADLK, run 4 closing, 4 fired, run 2 closing, 2 fired, run 5 closing, 0 dropped, "
       "3 dropped, 1 dropped, pending=0, disarmed=0, dropped=3, fired=3"},
      {"disarm 0 2; reset 0 by=0", "GONE, GONE, ESHUTDOWN"}}},
    {"is dropped with its service",
     {{"timer 0 never persistent; timer 1 in=1 persistent; drive 1; timer 2 in=9 persistent",
       "@1 run 1"},
      {"close drop; disarm 2; reset 0 by=0; stats dropped",
       "0 dropped, 1 dropped, 2 dropped, GONE, ESHUTDOWN, dropped=3"}}},
};

Test(timer_persistent, follows_the_scripts)
{
	PLAY(&timer_stage, NULL, scripts);
}

/* ------------------------------------------------------------ a late reset */

/* As a thread's reset does that has found the service open, and stood still. */
static void reset_late(struct probe *probe)
{
	tw_service *service = probe->rig->service;
	uint64_t entry;
	expect_eq(tw__handle_entry(&service->slots, probe->other->timer, &entry), true);
	uint64_t word = tw_load_acquire(&service->slots.words[(uint32_t)entry]);
	probe->answer =
	    tw__reset_seen(service, entry, &word, rig_now(probe->rig) + 40 * SECOND, false, false);
}

/*
 * The close takes the disarmed timer's entry out of its bucket. The note of that entry must go with
 * it: else it covers the entry of the reset, and the close never ends.
 */
Test(timer_persistent, a_close_that_runs_all_meets_a_reset_that_comes_late)
{
	for (int relocated = 0; relocated < 2; relocated++) {
		reopen_rig(NULL);
		struct probe probe = PROBE(&rig, 1), late = PROBE(&rig, 2);
		create(&probe, MINUTE);
		rig_advance(&rig, MS);
		if (relocated)
			expect_eq(tw_reset(rig.service, probe.timer, 30 * SECOND), 0);
		rig_advance(&rig, MS);
		expect_eq(tw_disarm(rig.service, probe.timer), TW_CANCELLED);
		late.other = &probe;
		late.act = reset_late;
		expect_eq(tw_schedule(rig.service, 90 * SECOND, probe_run, &late, &late.timer), 0);
		rig_advance(&rig, MS);
		expect_eq(tw_service_close(rig.service, TW_CLOSE_RUN, 5 * SECOND), 0);
		expect_eq(late.answer, 0);
		expect_eq(probe.runs, 1);
	}
}
