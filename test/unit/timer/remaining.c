/* tw_remaining of timers that are far away, before and after the driver has met them. */
#include "test/support/expect.h"
#include "test/support/rig_suite.h"
#include "test/support/timer_script.h"

TestSuite(timer_remaining, .init = open_rig, .fini = close_rig);

/* To the tick that it is due in. */
static void expect_left(struct probe *probe, uint64_t ns)
{
	uint64_t left_ns = 0;
	expect_eq(tw_remaining(probe->rig->service, probe->timer, &left_ns), 0);
	expect_ge(left_ns, ns);
	expect_lt(left_ns, ns + probe->rig->tick_ns);
}

/* Half an hour is far at the finest tick. */
Test(timer_remaining, is_exact_at_any_tick)
{
	static const uint64_t ticks_ns[] = {50000, 1000000, 1000000000};
	for (int i = 0; i < 3; i++) {
		struct tw_service_config cfg = rig_config();
		cfg.tick_ns = ticks_ns[i];
		reopen_rig(&cfg);
		struct probe probe = PROBE(&rig, 1);
		for (uint64_t minutes = 1; minutes < 60 * 24 * 400; minutes *= 6) {
			probe_schedule(&probe, minutes * MINUTE);
			expect_left(&probe, minutes * MINUTE);
			probe_schedule_at(&probe, rig_now(&rig) + minutes * MINUTE);
			expect_left(&probe, minutes * MINUTE);
		}
		rig_advance(&rig, 0);
		expect_left(&probe, 279936 * MINUTE);
	}
}

static const struct script scripts[] = {
    {"counts down before the driver turns",
     {{"drive 10800000; timer 0 in=36000000 plain; left 0; pass 10800000; left 0; cancel 0",
       "@10800000 left 36000000, @21600000 left 25200000, CANCELLED"}}},
    /* between two turns of the driver, and after them */
    {"is of the last move",
     {{"timer 0 in=1000 plain; reset 0 by=72000000; left 0; reset 0 by=10800000000; left 0",
       "left 72000000, left 10800000000"},
      {"reset 0 by=39600000; left 0; drive 0; left 0; reset 0 by=1000; drive 0; left 0",
       "left 39600000, left 39600000, left 1000"},
      {"reset 0 by=34560000000; drive 0; left 0; reset 0 by=60000; drive 0; left 0",
       "left 34560000000, left 60000"},
      {"reset 0 by=36000000; left 0; drive 3600000; left 0; cancel 0",
       "left 36000000, @3600000 left 32400000, CANCELLED"}}},
    {"of series, and of what its callback moves far",
     {{"timer 0 first=43200000 every=72000000 plain; timer 2 in=72000001 plain; left 0 2",
       "left 43200000, left 72000001"},
      {"timer 1 in=43200000 {reset 1 by=108000000} plain; drive 43200000; left 0..2",
       "@43200000 run 0, run 1, left 72000000, left 108000000, left 28800001"},
      {"drive 3600000; left 0..1; cancel 0..2",
       "@46800000 left 68400000, left 104400000, CANCELLED, CANCELLED, CANCELLED"}}},
};

Test(timer_remaining, follows_the_scripts)
{
	PLAY(&timer_stage, NULL, scripts);
}
