/* Members that are cancelled one by one, and others in their place. */
#include <errno.h>
#include <pthread.h>

#include "test/support/members.h"

TestSuite(group_again, .timeout = 30);

enum { INDEX = 0xffffff, MANY = 20 };

static void cancel_alone(struct probe *probe)
{
	expect_eq(tw_cancel(probe->rig->service, probe->timer), TW_CANCELLED);
	expect_eq(tw_cancel(probe->rig->service, probe->timer), TW_GONE);
}

static void come_and_go(struct rig *rig, tw_group group)
{
	struct probe probe = PROBE(rig, 0);
	expect_eq(schedule_in(&probe, group, MS, false), 0);
	cancel_alone(&probe);
	expect_eq(schedule_in(&probe, group, MS, false), 0);
	expect_eq(gauges(rig, group).members, 1);
	cancel_alone(&probe);
	expect_eq(gauges(rig, group).members, 0);
}

Test(group_again, a_member_in_the_place_of_a_cancelled_one_runs)
{
	struct rig rig;
	rig_open(&rig, NULL);
	tw_group group = group_of(&rig);
	come_and_go(&rig, group);
	struct probe runs = PROBE(&rig, 1);
	expect_eq(schedule_in(&runs, group, MS, false), 0);
	expect_eq(gauges(&rig, group).members, 1);
	rig_advance(&rig, SECOND);
	expect_ran_at(&runs, RIG_START_NS + MS);
	expect_eq(rig.ran, 1);
	expect_eq(gauges(&rig, group).members, 0);
	rig_close(&rig);
}

Test(group_again, it_is_cancelled_with_its_group_and_the_next_one_is_not)
{
	struct rig rig;
	rig_open(&rig, NULL);
	tw_group group = group_of(&rig);
	come_and_go(&rig, group);
	struct probe cancelled = PROBE(&rig, 1), next = PROBE(&rig, 2);
	expect_eq(schedule_in(&cancelled, group, MS, false), 0);
	expect_eq(tw_group_cancel(rig.service, group), 0);
	expect_eq(tw_cancel(rig.service, cancelled.timer), TW_GONE);
	expect_eq(schedule_in(&next, group, MS, false), 0);
	expect_eq(gauges(&rig, group).members, 1);
	rig_advance(&rig, SECOND);
	expect_eq(cancelled.runs, 0);
	expect_eq(next.runs, 1);
	expect_eq(stats_of(rig.service).cancelled, 3);
	expect_eq(gauges(&rig, group).members, 0);
	rig_close(&rig);
}

Test(group_again, a_member_after_a_cancel_of_the_group_runs)
{
	struct rig rig;
	rig_open(&rig, NULL);
	tw_group group = group_of(&rig);
	come_and_go(&rig, group);
	expect_eq(tw_group_cancel(rig.service, group), 0);
	struct probe next = PROBE(&rig, 1);
	expect_eq(schedule_in(&next, group, MS, false), 0);
	expect_eq(tw_is_pending(rig.service, next.timer), true);
	rig_advance(&rig, SECOND);
	expect_eq(next.runs, 1);
	rig_close(&rig);
}

Test(group_again, a_member_has_nothing_of_the_last_one_in_its_place)
{
	struct rig rig;
	rig_open(&rig, NULL);
	tw_group group = group_of(&rig);
	come_and_go(&rig, group);
	struct probe released = PROBE(&rig, 1), plain = PROBE(&rig, 2), series = PROBE(&rig, 3),
		     last = PROBE(&rig, 4);
	expect_eq(schedule_in(&released, group, MS, true), 0);
	cancel_alone(&released);
	expect_released(&released, TW_FATE_CANCELLED);
	expect_eq(schedule_in(&plain, group, MS, false), 0);
	cancel_alone(&plain);
	expect_eq(schedule_series_in(&series, group, rate_of(MS, MS, 0)), 0);
	cancel_alone(&series);
	expect_released(&series, TW_FATE_CANCELLED);
	expect_eq(schedule_in(&last, group, MS, false), 0);
	rig_advance(&rig, SECOND);
	expect_eq(last.runs, 1);
	expect_eq(plain.releases + last.releases, 0);
	expect_released(&released, TW_FATE_CANCELLED);
	expect_released(&series, TW_FATE_CANCELLED);
	rig_close(&rig);
}

Test(group_again, a_closed_group_takes_none)
{
	struct rig rig;
	rig_open(&rig, NULL);
	tw_group group = group_of(&rig);
	come_and_go(&rig, group);
	expect_eq(tw_group_close(rig.service, group), 0);
	struct probe late = PROBE(&rig, 1);
	expect_eq(schedule_in(&late, group, MS, false), -ESHUTDOWN);
	rig_advance(&rig, SECOND);
	expect_eq(rig.ran, 0);
	rig_close(&rig);
}

/* All are empty, and a cancel_wait of each has nothing to wait for. */
Test(group_again, many_groups_in_turn)
{
	struct rig rig;
	rig_open(&rig, NULL);
	tw_group groups[MANY];
	for (int i = 0; i < MANY; i++)
		groups[i] = group_of(&rig);
	for (int round = 0; round < 3; round++)
		for (int i = 0; i < MANY; i++)
			come_and_go(&rig, groups[i]);
	for (int i = 0; i < MANY; i++) {
		expect_eq(gauges(&rig, groups[i]).members, 0);
		expect_eq(tw_group_cancel_wait(rig.service, groups[i], TW_FOREVER), TW_CANCELLED);
		expect_eq(tw_group_destroy(rig.service, groups[i]), 0);
	}
	for (int i = MANY; i-- > 0;) /* last in, first out */
		expect_eq(group_of(&rig).id & INDEX, groups[i].id & INDEX);
	rig_close(&rig);
}

struct destroying {
	tw_service *service;
	tw_group group;
	int answer;
};

static void *destroy_elsewhere(void *me)
{
	struct destroying *self = me;
	self->answer = tw_group_destroy(self->service, self->group);
	return NULL;
}

Test(group_again, storage_goes_back_when_another_thread_destroys)
{
	struct rig rig;
	rig_open(&rig, NULL);
	tw_group group = group_of(&rig);
	come_and_go(&rig, group);
	struct destroying destroying = {.service = rig.service, .group = group};
	pthread_t thread;
	cr_assert(!pthread_create(&thread, NULL, destroy_elsewhere, &destroying));
	pthread_join(thread, NULL);
	expect_eq(destroying.answer, 0);
	rig_advance(&rig, MS);
	tw_group next = group_of(&rig);
	expect_eq(next.id & INDEX, group.id & INDEX);
	come_and_go(&rig, next);
	struct probe gone = PROBE(&rig, 1), member = PROBE(&rig, 2);
	expect_eq(schedule_in(&gone, group, MS, false), -ENOENT);
	expect_eq(schedule_in(&member, next, MS, false), 0);
	rig_advance(&rig, SECOND);
	expect_eq(member.runs, 1);
	rig_close(&rig);
}

static void *come_and_go_elsewhere(void *me)
{
	struct destroying *self = me;
	struct tw_task task = {
	    .size = sizeof task, .fn = probe_run, .when_ns = MS, .group = self->group};
	tw_timer timer;
	for (int i = 0; i < 3; i++)
		self->answer |= tw_schedule_task(self->service, &task, &timer) ||
				tw_cancel(self->service, timer) != TW_CANCELLED;
	return NULL;
}

Test(group_again, a_thread_may_end_before_the_groups_that_it_has_used)
{
	struct rig rig;
	rig_open(&rig, NULL);
	tw_group group = group_of(&rig);
	struct destroying other = {.service = rig.service, .group = group};
	pthread_t thread;
	cr_assert(!pthread_create(&thread, NULL, come_and_go_elsewhere, &other));
	pthread_join(thread, NULL);
	expect_eq(other.answer, 0);
	expect_eq(gauges(&rig, group).members, 0);
	come_and_go(&rig, group);
	expect_eq(tw_group_destroy(rig.service, group), 0);
	expect_eq(group_of(&rig).id & INDEX, group.id & INDEX);
	rig_close(&rig);
}
