/* Close beside groups: what becomes of their members. */
#include <errno.h>

#include "test/support/members.h"
#include "test/support/rig_suite.h"

TestSuite(close_groups, .init = open_rig, .fini = close_rig, .timeout = 30);

/*
 * Members of cancelled groups are not dropped timers, whether a call has met them as gone or not.
 */
Test(close_groups, drops_live_members_only)
{
	tw_group cancelled = group_of(&rig), destroyed = group_of(&rig), live = group_of(&rig);
	struct probe stale = PROBE(&rig, 1), doomed = PROBE(&rig, 2), series = PROBE(&rig, 3),
		     orphan = PROBE(&rig, 4);
	struct probe member = PROBE(&rig, 5), live_series = PROBE(&rig, 6), plain = PROBE(&rig, 7);
	expect_eq(schedule_in(&stale, cancelled, HOUR, true), 0);
	expect_eq(schedule_in(&doomed, cancelled, HOUR, true), 0);
	expect_eq(schedule_series_in(&series, cancelled, rate_of(HOUR, MS, 0)), 0);
	expect_eq(schedule_in(&orphan, destroyed, HOUR, true), 0);
	expect_eq(schedule_in(&member, live, HOUR, true), 0);
	expect_eq(schedule_series_in(&live_series, live, rate_of(HOUR, MS, 0)), 0);
	probe_schedule(&plain, HOUR);
	rig_advance(&rig, MS);
	expect_eq(tw_group_cancel(rig.service, cancelled), 0);
	expect_eq(tw_group_destroy(rig.service, destroyed), 0);
	expect_eq(tw_cancel(rig.service, doomed.timer), TW_GONE);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, TW_FOREVER), 0);
	expect_released(&stale, TW_FATE_CANCELLED);
	expect_released(&doomed, TW_FATE_CANCELLED);
	expect_released(&series, TW_FATE_CANCELLED);
	expect_released(&orphan, TW_FATE_CANCELLED);
	expect_released(&member, TW_FATE_DROPPED);
	expect_released(&live_series, TW_FATE_DROPPED);
	expect_eq(stats_of(rig.service).cancelled, 4);
	expect_eq(stats_of(rig.service).dropped, 3);
	expect_eq(gauges(&rig, live).members + gauges(&rig, cancelled).members, 0);
	expect_eq(rig.ran, 0);
	expect_eq(schedule_in(&member, live, MS, true), -ESHUTDOWN);
	expect_eq(tw_group_create(&live, rig.service), -ESHUTDOWN);
	expect_eq(tw_group_cancel(rig.service, live), 0);
	expect_eq(tw_group_cancel_wait(rig.service, live, TW_FOREVER), 0);
	expect_eq(tw_group_destroy(rig.service, live), 0);
}

/*
 * The close drops runs that wait for their executor. Their tickets run nothing, and the group is
 * empty immediately.
 */
Test(close_groups, with_timeout_0_empties_groups_whose_members_wait_for_their_executor)
{
	reopen_on_queue();
	tw_group group = group_of(&rig), cancelled = group_of(&rig);
	struct probe member = PROBE(&rig, 1), series = PROBE(&rig, 2), stale = PROBE(&rig, 3);
	expect_eq(schedule_in(&member, group, MS, true), 0);
	expect_eq(schedule_series_in(&series, group, rate_of(MS, MS, 0)), 0);
	expect_eq(schedule_in(&stale, cancelled, MS, true), 0);
	rig_advance(&rig, MS);
	expect_eq(queue_executor_waiting(&queue), 3);
	expect_eq(tw_group_cancel(rig.service, cancelled), 0);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, 0), -ETIMEDOUT);
	expect_released(&member, TW_FATE_DROPPED);
	expect_released(&series, TW_FATE_DROPPED);
	expect_released(&stale, TW_FATE_CANCELLED);
	expect_eq(gauges(&rig, group).members + gauges(&rig, cancelled).members, 0);
	expect_eq(tw_group_cancel_wait(rig.service, group, TW_FOREVER), TW_CANCELLED);
	expect_eq(queue_executor_run_all(&queue), 0);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, TW_FOREVER), 0);
	expect_eq(rig.ran, 0);
}

/* Each pending member runs once, a series ends with that run; cancelled ones do not. */
Test(close_groups, that_runs_runs_live_members_once)
{
	tw_group group = group_of(&rig), cancelled = group_of(&rig);
	struct probe member = PROBE(&rig, 1), series = PROBE(&rig, 2), stale = PROBE(&rig, 3);
	expect_eq(schedule_in(&member, group, HOUR, true), 0);
	expect_eq(schedule_series_in(&series, group, rate_of(HOUR, MS, 0)), 0);
	expect_eq(schedule_series_in(&stale, cancelled, rate_of(HOUR, MS, 0)), 0);
	expect_eq(tw_group_close(rig.service, cancelled), 0);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_RUN, TW_FOREVER), 0);
	expect_eq(member.runs, 1);
	expect_eq(series.runs, 1);
	expect_eq(stale.runs, 0);
	expect_eq(member.releases + series.releases, 2);
	expect_released(&stale, TW_FATE_CANCELLED);
	expect_eq(gauges(&rig, group).members, 0);
}

/* Cancelled members need no clock: nobody would wait for itself. */
Test(close_groups, that_drains_waits_for_none_that_is_cancelled)
{
	tw_group group = group_of(&rig);
	struct probe stale = PROBE(&rig, 1);
	expect_eq(schedule_in(&stale, group, HOUR, true), 0);
	expect_eq(tw_group_cancel(rig.service, group), 0);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DRAIN, TW_FOREVER), 0);
	expect_released(&stale, TW_FATE_CANCELLED);
}
