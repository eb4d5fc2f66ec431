/* tw_run_info: how late a run began. The callback decides what to do about it. */
#include "test/support/current.h"
#include "test/support/rig_suite.h"
#include "test/support/timer_script.h"

TestSuite(timer_lateness, .init = open_rig, .fini = close_rig, .timeout = 30);

static void note_in_release(struct probe *probe)
{
	probe->answer = current_run().late_ns == 0 && tw_self().id == probe->timer.id;
}

Test(timer_lateness, is_0_in_a_release)
{
	struct probe probe = PROBE(&rig, 1);
	probe.act_in_release = note_in_release;
	probe_schedule_released(&probe, 10 * MS);
	expect_eq(tw_clock_manual_set(rig.clock, RIG_START_NS + SECOND), 0);
	expect_eq(tw_service_advance(rig.service, TW_NO_LIMIT), 1);
	expect_eq(probe.answer, true);
}

static const struct script scripts[] = {
    {"0 in time",
     {{"timer 0 in=10; timer 1 in=8640000000; timer 2 first=1 every=10 count=3 plain", ""},
      {"drive 8640000000",
       "@1 run 2, @10 run 0, 0 fired, @11 run 2, @21 run 2, @8640000000 run 1, 1 fired"}}},
    {"from where a timer was moved to",
     {{"timer 0 in=10 plain; timer 1 in=3600000 plain; reset 0 by=40; reset 1 by=20", ""},
      {"pass 50; drive 0", "@50 run 1 late=30, run 0 late=10"}}},
    /* beyond what the bits of a word can tell, at 1 ms a tick */
    {"from a deadline long past",
     {{"timer 0 in=10 plain; timer 1 first=10 every=10 count=1 plain delayed; reset 1 by=20", ""},
      {"pass 2592000000; drive 0", "@2592000000 run 0 late=2591999990, run 1 late=2591999980"},
      {"timer 2 at=5 plain; drive 1", "run 2 late=2591999995"}}},
    {"from the instant that a run of a series stands for",
     {{"timer 0 first=10 every=10 plain; timer 1 first=10 every=10 plain coalesce", ""},
      {"timer 2 first=10 every=10 plain burst; timer 3 first=10 every=10 plain delayed", ""},
      {"pass 45; poll",
       "@45 run 0 late=5 overruns=3, run 1 late=5 overruns=3, run 2 late=35, run 3 late=35, 4"},
      {"poll; poll; poll; poll", "run 2 late=25, 1, run 2 late=15, 1, run 2 late=5, 1"},
      {"cancel 0..3", "CANCELLED, CANCELLED, CANCELLED, CANCELLED"}}},
    {"grows while the release of another lasts",
     {{"timer 0 in=1 [pass 5]; timer 1 in=1 plain; drive 1",
       "@1 run 0, 0 fired, @6 run 1 late=5"}}},
    {"grows in the executor's queue",
     {{"given queued; timer 0 in=10 plain; timer 1 in=20 plain persistent; hold; drive 1000", ""},
      {"pump; cancel 1", "@1000 run 0 late=990, run 1 late=980, CANCELLED"}}},
    {"0 for what a close runs before its time",
     {{"timer 0 in=1000 plain; timer 1 in=86400000000 plain; timer 3 in=10 plain", ""},
      {"timer 2 first=1000 every=1000 plain; pass 50; close run",
       "@50 run 3 late=40 closing, run 0 closing, run 2 closing, run 1 closing"}}},
};

Test(timer_lateness, is_as_the_scripts_say)
{
	PLAY(&timer_stage, NULL, scripts);
}
