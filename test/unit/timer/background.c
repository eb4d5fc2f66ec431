/* Background timers: a drain does not wait for them. */
#include <errno.h>

#include "test/support/members.h"
#include "test/support/rig_suite.h"

TestSuite(timer_background, .init = open_rig, .fini = close_rig, .timeout = 30);

static struct tw_task background_task(struct probe *probe, uint64_t delay_ns)
{
	struct tw_task task = probe_task(probe);
	task.when_ns = delay_ns;
	task.flags = TW_TASK_BACKGROUND;
	return task;
}

static void schedule_background(struct probe *probe, uint64_t delay_ns)
{
	struct tw_task task = background_task(probe, delay_ns);
	probe_schedule_task(probe, &task);
}

static void schedule_background_series(struct probe *probe, uint64_t first_ns, uint64_t period_ns)
{
	struct tw_period period = rate_of(first_ns, period_ns, 0);
	struct tw_task task = background_task(probe, 0);
	task.period = &period;
	probe_schedule_task(probe, &task);
}

Test(timer_background, fires_as_any_other)
{
	struct probe once = PROBE(&rig, 1), series = PROBE(&rig, 2);
	schedule_background(&once, MS);
	schedule_background_series(&series, MS, MS);
	rig_advance(&rig, 3 * MS);
	expect_released(&once, TW_FATE_FIRED);
	expect_eq(series.runs, 3);
	expect_eq(tw_reset(rig.service, series.timer, 10 * MS), 0);
	rig_advance(&rig, 10 * MS);
	expect_eq(series.runs, 4);
	expect_eq(tw_cancel(rig.service, series.timer), TW_CANCELLED);
	expect_released(&series, TW_FATE_CANCELLED);
}

/* On a manual clock a drain with timers pending would wait for itself: not with these. */
Test(timer_background, holds_up_no_drain)
{
	reopen_rig(NULL);
	struct probe once = PROBE(&rig, 1), far = PROBE(&rig, 2), series = PROBE(&rig, 3),
		     due = PROBE(&rig, 4);
	schedule_background(&once, MS);
	schedule_background(&far, 300 * DAY);
	schedule_background(&due, 0);
	schedule_background_series(&series, MS, MS);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DRAIN, TW_FOREVER), 0);
	expect_released(&once, TW_FATE_DROPPED);
	expect_released(&far, TW_FATE_DROPPED);
	expect_released(&series, TW_FATE_DROPPED);
	expect_released(&due, TW_FATE_DROPPED);
}

Test(timer_background, others_hold_it_up_still)
{
	struct probe other = PROBE(&rig, 1), idle = PROBE(&rig, 2);
	probe_schedule(&other, SECOND);
	schedule_background(&idle, MS);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DRAIN, TW_FOREVER), -EDEADLK);
	expect_eq(tw_cancel(rig.service, other.timer), TW_CANCELLED);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DRAIN, TW_FOREVER), 0);
	expect_released(&idle, TW_FATE_DROPPED);
}

Test(timer_background, runs_in_a_close_that_runs_all)
{
	struct probe once = PROBE(&rig, 1), series = PROBE(&rig, 2);
	schedule_background(&once, HOUR);
	schedule_background_series(&series, HOUR, MS);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_RUN, TW_FOREVER), 0);
	expect_released(&once, TW_FATE_FIRED);
	expect_released(&series, TW_FATE_FIRED);
	expect_eq(rig.ran, 2);
}

/* A member of a group is one in the background too, in the place of one that was not. */
Test(timer_background, may_be_a_member_of_a_group)
{
	tw_group group = group_of(&rig);
	struct probe before = PROBE(&rig, 0), idle = PROBE(&rig, 1), ended = PROBE(&rig, 2);
	expect_eq(schedule_in(&before, group, MS, false), 0);
	expect_eq(tw_cancel(rig.service, before.timer), TW_CANCELLED);
	struct tw_task task = background_task(&idle, HOUR);
	task.group = group;
	probe_schedule_task(&idle, &task);
	task = background_task(&ended, HOUR);
	task.group = group_of(&rig);
	probe_schedule_task(&ended, &task);
	expect_eq(tw_group_cancel(rig.service, task.group), 0);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DRAIN, TW_FOREVER), 0);
	expect_released(&idle, TW_FATE_DROPPED);
	expect_released(&ended, TW_FATE_CANCELLED);
}

Test(timer_background, has_no_need_of_a_release)
{
	struct probe probe = PROBE(&rig, 1);
	struct tw_task task = background_task(&probe, HOUR);
	task.release = NULL;
	probe_schedule_task(&probe, &task);
	for (int i = 0; i < 2; i++)
		expect_eq(tw_schedule_task(rig.service, &task, NULL), 0);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DRAIN, TW_FOREVER), 0);
	expect_eq(stats_of(rig.service).dropped, 3);
}
