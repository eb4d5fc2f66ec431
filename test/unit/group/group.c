/*
 * Groups: what calls on a member answer after its group was cancelled, what ends the member, and
 * the ledger meanwhile.
 */
#include <errno.h>

#include "test/support/members.h"
#include "test/support/rig_suite.h"

TestSuite(group, .init = open_rig, .fini = close_rig, .timeout = 30);

/* ------------------------------------------------------------ members that do not run */

Test(group, members_fire_like_other_timers)
{
	tw_group group = group_of(&rig);
	struct probe plain = PROBE(&rig, 1), released = PROBE(&rig, 2), series = PROBE(&rig, 3);
	expect_eq(schedule_in(&plain, group, MS, false), 0);
	expect_eq(schedule_in(&released, group, 2 * MS, true), 0);
	expect_eq(schedule_series_in(&series, group, rate_of(3 * MS, MS, 4)), 0);
	expect_eq(gauges(&rig, group).members, 3);
	rig_advance(&rig, SECOND);
	expect_ran_at(&plain, RIG_START_NS + MS);
	expect_ran_at(&released, RIG_START_NS + 2 * MS);
	expect_released(&released, TW_FATE_FIRED);
	expect_eq(series.runs, 4);
	expect_released(&series, TW_FATE_FIRED);
	expect_eq(gauges(&rig, group).members, 0);
	expect_eq(gauges(&rig, group).running, 0);
}

Test(group, a_member_can_be_cancelled_and_moved_by_itself)
{
	tw_group group = group_of(&rig);
	struct probe moved = PROBE(&rig, 1), cancelled = PROBE(&rig, 2), released = PROBE(&rig, 3);
	expect_eq(schedule_in(&moved, group, MS, false), 0);
	expect_eq(schedule_in(&cancelled, group, MS, false), 0);
	expect_eq(schedule_in(&released, group, MS, true), 0);
	expect_eq(tw_reset(rig.service, moved.timer, 5 * MS), 0);
	expect_eq(tw_cancel(rig.service, cancelled.timer), TW_CANCELLED);
	expect_eq(tw_cancel(rig.service, cancelled.timer), TW_GONE);
	expect_eq(tw_cancel(rig.service, released.timer), TW_CANCELLED);
	expect_released(&released, TW_FATE_CANCELLED);
	expect_eq(gauges(&rig, group).members, 1);
	rig_advance(&rig, SECOND);
	expect_ran_at(&moved, RIG_START_NS + 5 * MS);
	expect_eq(rig.ran, 1);
	expect_eq(stats_of(rig.service).cancelled, 2);
}

static int count_visits(void *count, tw_timer timer, tw_fn *fn, void *arg, uint64_t remaining_ns)
{
	(void)timer, (void)fn, (void)arg, (void)remaining_ns;
	++*(int *)count;
	return 0;
}

Test(group, cancelled_members_count_as_cancelled_once_from_the_cancel_on)
{
	tw_group group = group_of(&rig);
	enum { COUNT = 1000 };
	static struct probe probes[COUNT];
	for (int i = 0; i < COUNT; i++) {
		probes[i] = PROBE(&rig, i);
		expect_eq(schedule_in(&probes[i], group, SECOND, i % 2), 0);
	}
	rig_advance(&rig, MS);
	expect_eq(tw_group_cancel(rig.service, group), 0);
	expect_eq(tw_cancel(rig.service, probes[0].timer), TW_GONE);
	int visits = 0;
	expect_eq(tw_service_foreach(rig.service, count_visits, &visits), 0);
	expect_eq(visits, 0);
	for (int times = 0; times < 2; times++) {
		expect_eq(stats_of(rig.service).scheduled, COUNT);
		expect_eq(stats_of(rig.service).cancelled, COUNT);
		expect_eq(stats_of(rig.service).pending, 0);
		expect_sound(rig.service);
		expect_eq(tw_group_cancel(rig.service, group), 0);
		rig_advance(&rig, MS);
	}
	expect_eq(gauges(&rig, group).members, 0);
	for (int i = 1; i < COUNT; i += 2)
		expect_released(&probes[i], TW_FATE_CANCELLED);
}

/* Far timers, and those moved to earlier, have entries in more places. */
Test(group, leaves_nothing_behind_in_the_wheel)
{
	tw_group group = group_of(&rig);
	struct probe near = PROBE(&rig, 1), far = PROBE(&rig, 2), earlier = PROBE(&rig, 3);
	expect_eq(schedule_in(&near, group, 20 * MS, false), 0);
	expect_eq(schedule_in(&far, group, 400 * DAY, false), 0);
	expect_eq(schedule_in(&earlier, group, HOUR, false), 0);
	rig_advance(&rig, MS);
	expect_eq(tw_reset(rig.service, earlier.timer, 30 * MS), 0);
	expect_eq(tw_group_cancel(rig.service, group), 0);
	rig_advance(&rig, MS);
	expect_sound(rig.service);
	rig_advance(&rig, 401 * DAY);
	expect_eq(rig.ran, 0);
	expect_eq(stats_of(rig.service).entries, 0);
}

/* ------------------------------------------------------------ members that are due, or run */

static void cancel_group_inside(struct probe *probe)
{
	tw_service *service = probe->rig->service;
	tw_group group = {probe->other->timer.id};
	int answers = tw_group_cancel(service, group) == 0;
	answers += 2 * (tw_cancel(service, probe->timer) == TW_RUNNING);
	answers += 4 * (tw_reset(service, probe->timer, MS) == -ECANCELED);
	answers += 8 * (tw_group_cancel_wait(service, group, TW_FOREVER) == TW_SELF);
	answers += 16 * (tw_cancel_wait(service, probe->timer, TW_FOREVER) == TW_SELF);
	answers += 32 * (gauges(probe->rig, group).running == 1);
	probe->answer = answers;
}

Test(group, cancelled_from_a_members_callback)
{
	tw_group group = group_of(&rig);
	struct probe carrier = {.timer = {group.id}}; /* the group's handle for the callback */
	struct probe inside = PROBE(&rig, 1), other = PROBE(&rig, 2);
	inside.act = cancel_group_inside;
	inside.other = &carrier;
	expect_eq(schedule_in(&inside, group, MS, true), 0);
	expect_eq(schedule_in(&other, group, MS, true), 0);
	rig_advance(&rig, SECOND);
	expect_eq(inside.answer, 63);
	expect_eq(rig.ran, 1);
	expect_eq(inside.releases, 1);
	expect_released(&other, TW_FATE_CANCELLED);
}

/* Re-arms, then cancels the group: the re-arm was before the cancel, and goes with it. */
static void re_arm_then_cancel_group(struct probe *probe)
{
	tw_group group = {probe->other->timer.id};
	probe->answer = tw_reset(probe->rig->service, probe->timer, MS);
	if (probe->answer == 0)
		probe->answer = tw_group_cancel(probe->rig->service, group);
}

Test(group, a_run_under_way_is_the_last)
{
	tw_group group = group_of(&rig);
	struct probe carrier = {.timer = {group.id}};
	struct probe re_armed = PROBE(&rig, 1), series = PROBE(&rig, 2);
	re_armed.act = re_arm_then_cancel_group;
	re_armed.other = &carrier;
	expect_eq(schedule_in(&re_armed, group, MS, true), 0);
	rig_advance(&rig, SECOND);
	expect_eq(re_armed.answer, 0);
	expect_eq(re_armed.runs, 1);
	expect_released(&re_armed, TW_FATE_CANCELLED);
	series.act = cancel_group_inside;
	series.other = &carrier;
	expect_eq(schedule_series_in(&series, group, rate_of(MS, MS, 0)), 0);
	rig_advance(&rig, SECOND);
	expect_eq(series.runs, 1);
	expect_released(&series, TW_FATE_CANCELLED);
	expect_eq(stats_of(rig.service).cancelled, 2);
}

/*
 * Its last run would have ended the series anyway; it was cancelled all the same, as with
 * tw_cancel.
 */
Test(group, cancelled_in_the_last_run_of_a_series)
{
	tw_group group = group_of(&rig);
	struct probe carrier = {.timer = {group.id}}, series = PROBE(&rig, 1),
		     once = PROBE(&rig, 2);
	series.act = once.act = cancel_group_inside;
	series.other = once.other = &carrier;
	expect_eq(schedule_series_in(&series, group, rate_of(MS, MS, 1)), 0);
	rig_advance(&rig, SECOND);
	expect_released(&series, TW_FATE_CANCELLED);
	expect_eq(schedule_in(&once, group, MS, true), 0);
	rig_advance(&rig, SECOND);
	expect_released(&once, TW_FATE_FIRED);
}

static void re_arm_now(struct probe *probe)
{
	probe->answer = tw_reset(probe->rig->service, probe->timer, MS);
}

static void close_group(struct probe *probe)
{
	probe->answer = tw_group_close(probe->rig->service, (tw_group){probe->other->timer.id});
}

Test(group, close_ends_re_arms_and_series_and_refuses_later_arms)
{
	tw_group group = group_of(&rig);
	struct probe re_arming = PROBE(&rig, 1), series = PROBE(&rig, 2), closer = PROBE(&rig, 3),
		     late = PROBE(&rig, 4);
	struct probe carrier = {.timer = {group.id}};
	re_arming.act = re_arm_now;
	closer.act = close_group;
	closer.other = &carrier;
	expect_eq(schedule_in(&re_arming, group, MS, true), 0);
	expect_eq(schedule_series_in(&series, group, rate_of(MS, MS, 0)), 0);
	probe_schedule(&closer, 3 * MS + MS / 2);
	rig_advance(&rig, 3 * MS);
	expect_eq(re_arming.runs, 3);
	rig_advance(&rig, SECOND);
	expect_eq(closer.answer, 0);
	expect_eq(re_arming.runs, series.runs);
	expect_le(re_arming.runs, 4);
	expect_released(&re_arming, TW_FATE_CANCELLED);
	expect_released(&series, TW_FATE_CANCELLED);
	struct tw_service_stats before = stats_of(rig.service);
	late.timer.id = 1;
	expect_eq(schedule_in(&late, group, MS, true), -ESHUTDOWN);
	expect_eq(late.timer.id, 0);
	expect_eq(schedule_series_in(&late, group, rate_of(MS, MS, 0)), -ESHUTDOWN);
	struct tw_service_stats after = stats_of(rig.service);
	expect_same_state(&before, &after);
	expect_eq(tw_group_close(rig.service, group), 0);
	expect_eq(tw_group_cancel(rig.service, group), 0);
	rig_advance(&rig, SECOND);
	expect_eq(late.runs, 0);
	expect_eq(late.releases, 0);
}

/* ------------------------------------------------------------ waiting */

Test(group, cancel_calls_all_releases_before_it_returns)
{
	tw_group group = group_of(&rig);
	enum { COUNT = 1000 };
	static struct probe probes[COUNT];
	for (int waits = 0; waits < 2; waits++) {
		for (int i = 0; i < COUNT; i++) {
			probes[i] = PROBE(&rig, i);
			expect_eq(schedule_in(&probes[i], group, SECOND, true), 0);
		}
		if (waits)
			expect_eq(tw_group_cancel_wait(rig.service, group, 0), TW_CANCELLED);
		else
			expect_eq(tw_group_cancel(rig.service, group), 0);
		expect_eq(gauges(&rig, group).members, 0);
		for (int i = 0; i < COUNT; i++) {
			expect_released(&probes[i], TW_FATE_CANCELLED);
			expect_eq(tw_cancel_wait(rig.service, probes[i].timer, TW_FOREVER),
				  TW_GONE);
		}
	}
	expect_eq(stats_of(rig.service).cancelled, 2 * COUNT);
}

/*
 * G7: from a callback that is no member's, though the driver that runs it is the one that would
 * have ended them.
 */
static void wait_for_group(struct probe *probe)
{
	probe->answer = tw_group_cancel_wait(probe->rig->service,
					     (tw_group){probe->other->timer.id}, TW_FOREVER);
}

Test(group, cancel_wait_may_be_called_from_others_callbacks)
{
	tw_group group = group_of(&rig);
	struct probe carrier = {.timer = {group.id}}, waiter = PROBE(&rig, 1),
		     member = PROBE(&rig, 2);
	waiter.act = wait_for_group;
	waiter.other = &carrier;
	waiter.answer = -1;
	probe_schedule(&waiter, MS);
	expect_eq(schedule_in(&member, group, SECOND, true), 0);
	rig_advance(&rig, MS);
	expect_eq(waiter.answer, TW_CANCELLED);
	expect_released(&member, TW_FATE_CANCELLED);
}

static void wait_in_release(struct probe *probe)
{
	probe->answer = tw_group_cancel_wait(probe->rig->service,
					     (tw_group){probe->other->timer.id}, TW_FOREVER);
}

Test(group, cancel_wait_in_a_members_release_waits_for_nobody)
{
	tw_group group = group_of(&rig);
	struct probe carrier = {.timer = {group.id}}, member = PROBE(&rig, 1);
	member.act_in_release = wait_in_release;
	member.other = &carrier;
	expect_eq(schedule_in(&member, group, SECOND, true), 0);
	expect_eq(tw_group_cancel(rig.service, group), 0);
	rig_advance(&rig, MS);
	expect_eq(member.answer, TW_SELF);
	expect_released(&member, TW_FATE_CANCELLED);
}
