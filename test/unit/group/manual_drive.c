/* A manual drive beside groups, executors of single timers, and bursts: each call ends. */
#include <poll.h>

#include "test/support/members.h"
#include "test/support/rig_suite.h"
#include "test/support/timer_script.h"

TestSuite(group_manual_drive, .init = open_rig, .fini = close_rig, .timeout = 60);

/*
 * With a period far below the tick, a tick's worth of instants in each tick of a clock's advance.
 */
Test(group_manual_drive, a_clocks_advance_ends_with_a_burst_of_a_tiny_period)
{
	tw_group group = group_of(&rig);
	struct probe series = PROBE(&rig, 1);
	struct tw_period burst = rate_of(MS, 100, 0); /* ten thousand instants a tick */
	burst.missed = TW_MISSED_BURST;
	expect_eq(schedule_series_in(&series, group, burst), 0);
	rig_advance(&rig, 20 * MS);
	int runs = series.runs;
	expect_ge(runs, 20);
	expect_eq(tw_group_close(rig.service, group, NULL, NULL), 0);
	rig_advance(&rig, MS);
	expect_eq(series.runs, runs);
	expect_released(&series, TW_FATE_CANCELLED);
}

static const struct script scripts[] = {
    {"ends though a member's own executor refuses, until its group is cancelled",
     {{"group 0; refuse -1; timer 0 in=1 other group=0; timer 1 first=0 every=1 burst other "
       "group=0",
       ""},
      {"timer 2 in=10 group=0; drive 5; poll; poll; drive 5; members 0; waiting",
       "@10 run 2, 2 fired, members=2, 0 wait"},
      {"group_cancel 0; drive 2; waiting", "0 cancelled, 1 cancelled, @12 0 wait"}}},
    {"ends though a burst falls ever further behind",
     {{"group 0; timer 0 first=1 every=1 burst stays=3 group=0; pass 10; poll",
       "@10 run 0 late=9, @13 1"},
      {"poll; poll", "run 0 late=11, @16 1, run 0 late=13, @19 1"},
      {"group_cancel 0; poll", "0 cancelled"}}},
};

Test(group_manual_drive, follows_the_scripts)
{
	PLAY(&timer_stage, NULL, scripts);
}
