/*
 * Moving timers: later, earlier, before the driver has met them, and to and fro without end.
 */
#include <errno.h>

#include "test/support/persistent_suite.h"
#include "test/support/rig_suite.h"
#include "test/support/timer_script.h"

TestSuite(timer_reset, .init = open_rig, .fini = close_rig, .timeout = 30);

static void create_either(struct probe *probe, uint64_t delay_ns, bool persistent)
{
	if (persistent)
		create(probe, delay_ns);
	else
		probe_schedule(probe, delay_ns);
}

static const struct script scripts[] = {
    {"to later keeps its entry, to earlier needs another",
     {{"timer 0 in=10 plain; timer 1 in=1000 plain; timer 2 in=3600000 plain; drive 5", ""},
      {"reset 0 2 by=10; reset 1 by=12; reset 2 by=0; stats resets resets_eager; drive 0",
       "@5 resets=4, resets_eager=3, run 2"},
      {"drive 100", "@15 run 0, @17 run 1"}}},
    {"before the driver has met it",
     {{"timer 0 1 in=10 plain; timer 2 in=1000 plain; reset 0 by=3600000; reset 2 by=9", ""},
      {"reset 1 by=86400000; reset 1 by=7; stats resets resets_eager; drive 3600000",
       "resets=4, resets_eager=2, @7 run 1, @9 run 2, @3600000 run 0"}}},
    {"to an instant, which may be past, or where it is",
     {{"timer 0 in=10 plain; timer 1 in=3600000 plain; timer 2 in=3600000 plain; drive 5", ""},
      {"reset 0 at=30; reset 0 at=30; reset 1 at=20; reset 2 at=1; drive 0", "@5 run 2 late=4"},
      {"stats resets resets_eager; drive 30", "resets=4, resets_eager=2, @20 run 1, @30 run 0"}}},
};

Test(timer_reset, follows_the_scripts)
{
	PLAY(&timer_stage, NULL, scripts);
}

/* A persistent timer is disarmed between two moves: they arm it. */
static void expect_no_pile(bool persistent)
{
	struct probe probe = PROBE(&rig, 1);
	reopen_rig(NULL);
	create_either(&probe, 5 * SECOND, persistent);
	for (int i = 0; i < 60000; i++) {
		arm(&probe, i % 2 ? 5 * SECOND : MINUTE);
		if (i % 5 == 0)
			rig_advance(&rig, MS);
		if (persistent)
			expect_disarm(&probe, TW_CANCELLED);
		if (i % 1000 == 999)
			expect_le(stats_of(rig.service).entries, 2 * 4096);
	}
	expect_eq(probe.runs, 0);
	uint64_t due_ns = rig_tick_of(&rig, rig_now(&rig) + 5 * SECOND);
	arm(&probe, 5 * SECOND);
	rig_advance(&rig, HOUR);
	expect_ran_at(&probe, due_ns);
	expect_eq(stats_of(rig.service).pending, 0);
}

Test(timer_reset, between_two_deadlines_leaves_no_growing_pile_of_entries)
{
	expect_no_pile(false);
	expect_no_pile(true);
}

/* Where the second one has an entry already: not even one more for each turn. */
Test(timer_reset, between_two_instants_needs_an_entry_for_each)
{
	struct probe probe = PROBE(&rig, 1);
	uint64_t near_ns = rig_now(&rig) + 5 * SECOND, far_ns = rig_now(&rig) + MINUTE;
	probe_schedule_at(&probe, near_ns);
	for (int i = 0; i < 1000; i++) {
		expect_eq(tw_reset_at(rig.service, probe.timer, i % 2 ? near_ns : far_ns), 0);
		rig_advance(&rig, 0);
	}
	expect_le(stats_of(rig.service).entries, 2);
	rig_advance(&rig, HOUR);
	expect_ran_at(&probe, near_ns);
}

/*
 * Nobody drives: moves to earlier take room in the lane, and are refused rather than pile up or be
 * lost.
 */
static void expect_bound(bool persistent)
{
	struct tw_service_config cfg = rig_config();
	cfg.lane_entries = 1024;
	reopen_rig(&cfg);
	struct probe probe = PROBE(&rig, 1);
	create_either(&probe, 5 * SECOND, persistent);
	rig_advance(&rig, 0);
	uint64_t wanted_ns = 5 * SECOND;
	int refused = 0;
	for (int i = 0; i < 100000; i++) {
		uint64_t next_ns = i % 2 ? 5 * SECOND : MINUTE;
		int answer = tw_reset(rig.service, probe.timer, next_ns);
		refused += answer == -EAGAIN;
		if (answer == 0)
			wanted_ns = next_ns;
		else
			expect_eq(answer, -EAGAIN);
		if (persistent)
			expect_disarm(&probe, answer ? TW_DISARMED : TW_CANCELLED);
	}
	expect_eq(refused > 0 || !persistent, true);
	if (persistent)
		arm(&probe, wanted_ns = 2 * MINUTE);
	rig_advance(&rig, HOUR);
	expect_ran_at(&probe, RIG_START_NS + wanted_ns);
}

Test(timer_reset, between_two_deadlines_without_a_driver_is_bounded)
{
	expect_bound(false);
	expect_bound(true);
}
