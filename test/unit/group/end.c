/*
 * Groups: handles, limits, storage, executors of members, and very many members.
 */
#include <errno.h>
#include <stdlib.h>

#include "test/support/members.h"
#include "test/support/rig_suite.h"

TestSuite(group_end, .init = open_rig, .fini = close_rig, .timeout = 30);

/* ------------------------------------------------------------ handles */

Test(group_end, stale_and_foreign_handles_are_harmless)
{
	tw_group none = {0}, group = group_of(&rig);
	struct probe member = PROBE(&rig, 1), late = PROBE(&rig, 2);
	expect_eq(schedule_in(&member, group, MS, true), 0);
	expect_eq(tw_group_destroy(rig.service, group), 0);
	struct tw_group_stats stats = {.size = sizeof(stats)};
	tw_group stale[] = {
	    group, none, {group.id + 1}, {UINT64_MAX}, {group.id ^ UINT64_C(1) << 40}};
	for (size_t i = 0; i < sizeof stale / sizeof *stale; i++) {
		expect_eq(tw_group_cancel(rig.service, stale[i]), -ENOENT);
		expect_eq(tw_group_cancel_wait(rig.service, stale[i], TW_FOREVER), -ENOENT);
		expect_eq(tw_group_close(rig.service, stale[i], NULL, NULL), -ENOENT);
		expect_eq(tw_group_destroy(rig.service, stale[i]), -ENOENT);
		expect_eq(tw_group_stats(rig.service, stale[i], &stats), -ENOENT);
		if (stale[i].id)
			expect_eq(schedule_in(&late, stale[i], MS, true), -ENOENT);
	}
	rig_advance(&rig, SECOND);
	expect_eq(rig.ran, 0);
	expect_released(&member, TW_FATE_CANCELLED);
	expect_eq(late.releases, 0);
}

static tw_group made_inside;

static void destroy_and_make_another(struct probe *probe)
{
	probe->answer = tw_group_destroy(probe->rig->service, (tw_group){probe->other->timer.id});
	made_inside = group_of(probe->rig);
}

/* The index of a destroyed group is used again, but only when its last member has ended. */
Test(group_end, storage_lives_until_the_last_member_has_ended)
{
	tw_group group = group_of(&rig);
	struct probe carrier = {.timer = {group.id}}, member = PROBE(&rig, 1),
		     later = PROBE(&rig, 2);
	member.act = destroy_and_make_another;
	member.other = &carrier;
	expect_eq(schedule_in(&member, group, MS, true), 0);
	rig_advance(&rig, MS);
	expect_eq(member.answer, 0);
	expect_released(&member, TW_FATE_FIRED);
	expect_ne(made_inside.id & 0xffffff, group.id & 0xffffff);
	tw_group third = group_of(&rig);
	expect_eq(third.id & 0xffffff, group.id & 0xffffff);
	expect_ne(third.id, group.id);
	expect_eq(schedule_in(&later, third, MS, true), 0);
	expect_eq(tw_group_cancel(rig.service, group), -ENOENT);
	rig_advance(&rig, SECOND);
	expect_released(&later, TW_FATE_FIRED);
}

Test(group_end, groups_can_be_made_and_destroyed_without_end)
{
	tw_group first = group_of(&rig);
	for (int i = 0; i < 200000; i++) {
		tw_group group = group_of(&rig);
		expect_ne(group.id, first.id);
		expect_eq(tw_group_destroy(rig.service, group), 0);
	}
}

/* ------------------------------------------------- releases that end other members */

static int nested, deepest, left_to_run;

/* No member runs any more when the first release is called, and a cancel finds none to end. */
static void cancel_group_again(struct probe *probe)
{
	tw_group group = {probe->other->timer.id};
	nested++;
	deepest = nested > deepest ? nested : deepest;
	left_to_run += tw_is_pending(rig.service, probe[1].timer);
	probe->answer = tw_group_cancel(rig.service, group);
	if (probe->answer == 0)
		probe->answer = tw_group_cancel_wait(rig.service, group, TW_FOREVER);
	nested--;
}

Test(group_end, release_that_cancels_its_group_finds_nothing_left_to_end)
{
	enum { COUNT = 100000 };
	tw_group group = group_of(&rig);
	struct probe carrier = {.timer = {group.id}};
	struct probe *probes = calloc(COUNT + 1, sizeof *probes);
	nested = deepest = left_to_run = 0;
	for (int i = 0; i < COUNT; i++) {
		probes[i] = PROBE(&rig, i);
		probes[i].act_in_release = cancel_group_again;
		probes[i].other = &carrier;
		expect_eq(schedule_in(&probes[i], group, HOUR, true), 0);
	}
	expect_eq(tw_group_cancel(rig.service, group), 0);
	for (int i = 0; i < COUNT; i++) {
		expect_released(&probes[i], TW_FATE_CANCELLED);
		expect_eq(probes[i].answer, TW_SELF);
	}
	expect_eq(deepest, 1);
	expect_eq(left_to_run, 0);
	free(probes);
}
