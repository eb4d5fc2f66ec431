/* tw_group_close_then: the completion is called once, when all members have ended. */
#include <errno.h>
#include <string.h>

#include "test/support/ending.h"
#include "wheel/core/service.h"
#include "test/support/rig_suite.h"

TestSuite(group_then, .init = open_rig, .fini = close_rig, .timeout = 60);

/* ------------------------------------------------------------ when it is called */

Test(group_then, is_called_for_a_group_without_members)
{
	struct ending ending = ending_of(&rig);
	expect_eq(end(&ending), 0);
	expect_eq(ending.calls, 0);
	rig_advance(&rig, MS);
	expect_complete(&ending);
	rig_advance(&rig, SECOND);
	expect_complete(&ending);
}

Test(group_then, is_called_after_the_releases_of_pending_members)
{
	enum { COUNT = 1000 }; /* more than one hold of the lock */
	struct ending ending = ending_of(&rig);
	static struct probe members[COUNT];
	add_members(&ending, members, COUNT, HOUR);
	rig_advance(&rig, MS);
	expect_eq(end(&ending), 0);
	for (int i = 0; i < COUNT; i++)
		expect_released(&members[i], TW_FATE_CANCELLED);
	expect_eq(ending.calls, 0); /* not inside the call */
	rig_advance(&rig, MS);
	expect_complete(&ending);
	struct probe late = PROBE(&rig, COUNT);
	expect_eq(schedule_in(&late, ending.group, MS, true), -ESHUTDOWN);
	expect_eq(tw_group_destroy(rig.service, ending.group), 0);
}

Test(group_then, needs_no_turn_of_the_clock)
{
	struct ending ending = ending_of(&rig);
	expect_eq(end(&ending), 0);
	uint64_t next_ns = UINT64_MAX;
	expect_eq(tw_service_next_expiry(rig.service, &next_ns), 0);
	expect_le(next_ns, rig_now(&rig));
	/* a completion is no callback of a timer */
	expect_eq(tw_service_advance(rig.service, 1), 0);
	expect_complete(&ending);
}

static void end_from(void (*set)(struct probe *), uint64_t delay_ns)
{
	struct ending ending = ending_of(&rig);
	struct probe members[3];
	add_members(&ending, members, 3, delay_ns);
	set(&members[1]);
	members[1].other = (struct probe *)(void *)&ending;
	members[1].answer = -1;
	if (delay_ns == HOUR)
		expect_eq(tw_cancel(rig.service, members[1].timer), TW_CANCELLED);
	rig_advance(&rig, MS);
	expect_eq(members[1].answer, 0);
	expect_eq(ending.answer, 0);
	expect_complete(&ending);
}

static void in_callback(struct probe *probe)
{
	probe->act = end_of_probe;
}

static void in_release(struct probe *probe)
{
	probe->act_in_release = end_of_probe;
}

Test(group_then, may_be_asked_for_in_a_members_callback)
{
	end_from(in_callback, MS);
}

Test(group_then, may_be_asked_for_in_a_members_release)
{
	end_from(in_release, MS);   /* after a run */
	end_from(in_release, HOUR); /* on the thread that cancels */
}

/* A series and a re-armed one-shot end with the run that closes the group. */
static void rearm_and_end(struct probe *probe)
{
	tw_reset(probe->rig->service, probe->timer, MS);
	end_of_probe(probe);
}

Test(group_then, a_member_that_has_armed_itself_again_ends_first)
{
	struct ending ending = ending_of(&rig);
	struct probe members[1];
	add_members(&ending, members, 1, MS);
	members[0].act = rearm_and_end;
	members[0].other = (struct probe *)(void *)&ending;
	rig_advance(&rig, SECOND);
	expect_eq(members[0].runs, 1);
	expect_complete(&ending);
}

/* ------------------------------------------------------------ what it may do */

static int answers[5];

static void do_much(struct ending *ending)
{
	tw_service *service = ending->rig->service;
	answers[0] = tw_group_cancel_wait(service, ending->group, TW_FOREVER);
	answers[1] = end(ending);
	answers[2] = tw_service_close(service, TW_CLOSE_DROP, TW_FOREVER);
	answers[3] = tw_group_destroy(service, ending->group);
	answers[4] = tw_group_create(&ending->group, service);
}

Test(group_then, may_destroy_its_group_and_make_another)
{
	struct ending ending = ending_of(&rig);
	tw_group first = ending.group;
	struct probe members[2];
	add_members(&ending, members, 2, HOUR);
	ending.act = do_much;
	expect_eq(end(&ending), 0);
	rig_advance(&rig, MS);
	expect_complete(&ending);
	expect_eq(answers[0], TW_CANCELLED);
	expect_eq(answers[1], -EALREADY);
	expect_eq(answers[2], -EDEADLK);
	expect_eq(answers[3], 0);
	expect_eq(answers[4], 0);
	expect_eq(ending.group.id & 0xffffff, first.id & 0xffffff); /* the storage is free again */
	struct probe next = PROBE(&rig, 7);
	expect_eq(schedule_in(&next, ending.group, MS, true), 0);
	rig_advance(&rig, MS);
	expect_released(&next, TW_FATE_FIRED);
	expect_eq(ending.calls, 1);
}

Test(group_then, is_called_though_the_group_is_destroyed_before)
{
	struct ending ending = ending_of(&rig), empty = ending_of(&rig);
	struct probe members[2];
	add_members(&ending, members, 2, HOUR);
	expect_eq(end(&ending), 0);
	expect_eq(end(&empty), 0);
	expect_eq(tw_group_destroy(rig.service, ending.group), 0);
	expect_eq(tw_group_destroy(rig.service, empty.group), 0);
	tw_group other = group_of(&rig); /* not in the place of one whose completion is pending */
	expect_ne(other.id & 0xffffff, ending.group.id & 0xffffff);
	expect_ne(other.id & 0xffffff, empty.group.id & 0xffffff);
	rig_advance(&rig, MS);
	expect_complete(&ending);
	expect_complete(&empty);
	tw_group again[2] = {group_of(&rig), group_of(&rig)};
	expect_lt(again[0].id & 0xffffff, other.id & 0xffffff);
	expect_lt(again[1].id & 0xffffff, other.id & 0xffffff);
}

/* ------------------------------------------------------------ bad input */

static char heard[256];

static void hear(const char *text)
{
	strncpy(heard, text, sizeof heard - 1);
}

Test(group_then, bad_input_changes_nothing)
{
	tw_set_misuse_hook(hear);
	struct ending ending = ending_of(&rig);
	expect_eq(tw_group_close_then(NULL, ending.group, complete, &ending), -EINVAL);
	cr_assert_str_eq(heard, "tw_group_close_then: service is NULL");
	expect_eq(tw_group_close_then(rig.service, ending.group, NULL, &ending), -EINVAL);
	cr_assert_str_eq(heard, "tw_group_close_then: fn is NULL");
	expect_eq(tw_group_close_then(rig.service, (tw_group){0}, complete, &ending), -ENOENT);
	struct probe members[1];
	add_members(&ending, members, 1, MS); /* it is still open */
	rig_advance(&rig, MS);
	expect_released(&members[0], TW_FATE_FIRED);
	expect_eq(ending.calls, 0);
	expect_eq(tw_group_destroy(rig.service, ending.group), 0);
	expect_eq(end(&ending), -ENOENT);
	rig_advance(&rig, MS);
	expect_eq(ending.calls, 0);
	tw_set_misuse_hook(NULL);
}

Test(group_then, is_given_once)
{
	tw_set_misuse_hook(hear);
	struct ending ending = ending_of(&rig), other = ending;
	/* a closed group still takes one */
	expect_eq(tw_group_close(rig.service, ending.group), 0);
	expect_eq(end(&ending), 0);
	expect_eq(end(&other), -EALREADY);
	cr_assert_str_eq(heard, "tw_group_close_then: the group has a completion already");
	rig_advance(&rig, MS);
	expect_complete(&ending);
	expect_eq(end(&other), -EALREADY);
	rig_advance(&rig, MS);
	expect_eq(ending.calls, 1);
	expect_eq(other.calls, 0);
	tw_set_misuse_hook(NULL);
}

/* ------------------------------------------------------------ members of the past */

struct closing {
	struct ending *ending;
	int answer;
};

static void *end_elsewhere(void *arg)
{
	struct closing *closing = arg;
	closing->answer = end(closing->ending);
	return NULL;
}

/* Members that ended long ago hold nothing up. */
static void end_after_others(bool elsewhere)
{
	struct ending ending = ending_of(&rig);
	struct probe gone[3] = {PROBE(&rig, 1), PROBE(&rig, 2), PROBE(&rig, 3)};
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 3; i++)
			expect_eq(schedule_in(&gone[i], ending.group, MS, false), 0);
		for (int i = 0; i < 3; i++)
			expect_eq(tw_cancel(rig.service, gone[i].timer), TW_CANCELLED);
	}
	struct closing closing = {.ending = &ending};
	pthread_t thread;
	if (elsewhere) {
		expect_eq(pthread_create(&thread, NULL, end_elsewhere, &closing), 0);
		pthread_join(thread, NULL);
	} else {
		end_elsewhere(&closing);
	}
	expect_eq(closing.answer, 0);
	rig_advance(&rig, MS);
	expect_complete(&ending);
	expect_eq(schedule_in(&gone[0], ending.group, MS, false), -ESHUTDOWN);
	expect_eq(tw_group_destroy(rig.service, ending.group), 0);
}

Test(group_then, does_not_wait_for_members_that_have_ended)
{
	end_after_others(false);
	end_after_others(true);
}

/* ------------------------------------------------------------ a simulation */

Test(group_then, is_called_in_a_simulation)
{
	tw_sim *sim;
	struct tw_sim_config cfg = {.size = sizeof(cfg), .seed = 7, .workers = 3};
	expect_eq(tw_sim_create(&sim, &cfg), 0);
	struct rig simulated = {.service = tw_sim_service(sim),
				.clock = tw_sim_service(sim)->clock,
				.lock = PTHREAD_MUTEX_INITIALIZER};
	struct ending ending = ending_of(&simulated);
	struct probe members[20];
	add_members(&ending, members, 20, HOUR);
	expect_eq(tw_sim_run_for(sim, SECOND), 0);
	expect_eq(end(&ending), 0);
	expect_ge(tw_sim_run_until_idle(sim, SECOND), 0);
	expect_complete(&ending);
	expect_eq(tw_sim_destroy(sim), 0);
}
