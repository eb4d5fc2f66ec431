/* Members that are cancelled one by one, and others in their place; and groups likewise. */
#include <errno.h>
#include <pthread.h>

#include "test/support/members.h"
#include "test/support/rig_suite.h"

TestSuite(group_again, .init = open_rig, .fini = close_rig, .timeout = 30);

enum { INDEX = 0xffffff, MANY = 20 };

static void cancel_alone(struct probe *probe)
{
	expect_eq(tw_cancel(rig.service, probe->timer), TW_CANCELLED);
	expect_eq(tw_cancel(rig.service, probe->timer), TW_GONE);
}

static void come_and_go(tw_group group)
{
	struct probe probe = PROBE(&rig, 0);
	for (int i = 0; i < 2; i++) {
		expect_eq(schedule_in(&probe, group, MS, false), 0);
		expect_eq(gauges(&rig, group).members, 1);
		cancel_alone(&probe);
	}
	expect_eq(gauges(&rig, group).members, 0);
}

Test(group_again, a_cancel_ends_the_members_that_there_are_and_nobody_else)
{
	tw_group group = group_of(&rig);
	struct probe cancelled = PROBE(&rig, 1), next = PROBE(&rig, 2), other = PROBE(&rig, 3);
	probe_schedule(&other, MS);
	come_and_go(group);
	expect_eq(tw_group_cancel(rig.service, group), 0); /* of an empty group */
	expect_eq(schedule_in(&cancelled, group, MS, false), 0);
	expect_eq(tw_group_cancel(rig.service, group), 0);
	expect_eq(tw_cancel(rig.service, cancelled.timer), TW_GONE);
	expect_eq(schedule_in(&next, group, MS, false), 0);
	expect_eq(gauges(&rig, group).members, 1);
	rig_advance(&rig, SECOND);
	expect_eq(cancelled.runs, 0);
	expect_ran_at(&next, RIG_START_NS + MS);
	expect_ran_at(&other, RIG_START_NS + MS);
	expect_eq(stats_of(rig.service).cancelled, 3);
	expect_eq(gauges(&rig, group).members, 0);
}

Test(group_again, a_member_has_nothing_of_the_last_one_in_its_place)
{
	tw_group group = group_of(&rig);
	struct probe released = PROBE(&rig, 1), plain = PROBE(&rig, 2), series = PROBE(&rig, 3),
		     last = PROBE(&rig, 4);
	expect_eq(schedule_in(&released, group, MS, true), 0);
	cancel_alone(&released);
	expect_eq(schedule_in(&plain, group, MS, false), 0);
	cancel_alone(&plain);
	expect_eq(schedule_series_in(&series, group, rate_of(MS, MS, 0)), 0);
	cancel_alone(&series);
	expect_eq(schedule_in(&last, group, MS, false), 0);
	rig_advance(&rig, SECOND);
	expect_eq(last.runs, 1);
	expect_eq(plain.releases + last.releases, 0);
	expect_released(&released, TW_FATE_CANCELLED);
	expect_released(&series, TW_FATE_CANCELLED);
}

/* All are empty, and a cancel_wait of each has nothing to wait for. */
Test(group_again, many_groups_in_turn)
{
	tw_group groups[MANY];
	for (int i = 0; i < MANY; i++)
		groups[i] = group_of(&rig);
	for (int round = 0; round < 3; round++)
		for (int i = 0; i < MANY; i++)
			come_and_go(groups[i]);
	for (int i = 0; i < MANY; i++) {
		expect_eq(tw_group_cancel_wait(rig.service, groups[i], TW_FOREVER), TW_CANCELLED);
		expect_eq(tw_group_destroy(rig.service, groups[i]), 0);
	}
	for (int i = MANY; i-- > 0;) /* last in, first out */
		expect_eq(group_of(&rig).id & INDEX, groups[i].id & INDEX);
}

static void *use_and_destroy(void *arg)
{
	tw_group group = *(tw_group *)arg;
	struct tw_task task = {.size = sizeof task, .fn = probe_run, .when_ns = MS, .group = group};
	tw_timer timer;
	bool good = tw_schedule_task(rig.service, &task, &timer) == 0 &&
		    tw_cancel(rig.service, timer) == TW_CANCELLED &&
		    tw_group_destroy(rig.service, group) == 0;
	return good ? arg : NULL;
}

Test(group_again, storage_goes_back_when_another_thread_destroys)
{
	tw_group group = group_of(&rig);
	pthread_t thread;
	void *good;
	come_and_go(group);
	cr_assert(!pthread_create(&thread, NULL, use_and_destroy, &group));
	pthread_join(thread, &good);
	cr_assert(good);
	tw_group next = group_of(&rig);
	expect_eq(next.id & INDEX, group.id & INDEX);
	come_and_go(next);
	struct probe gone = PROBE(&rig, 1), member = PROBE(&rig, 2);
	expect_eq(schedule_in(&gone, group, MS, false), -ENOENT);
	expect_eq(schedule_in(&member, next, MS, false), 0);
	rig_advance(&rig, SECOND);
	expect_eq(member.runs, 1);
}
