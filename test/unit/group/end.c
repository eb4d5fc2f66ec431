/*
 * Groups: handles, limits, executors that refuse, close of the service, and how many members one
 * call finishes.
 */
#include <errno.h>

#include "test/support/members.h"
#include "test/support/queue_executor.h"

TestSuite(group_end, .timeout = 30);

/* ------------------------------------------------------------ handles */

Test(group_end, stale_and_foreign_handles_are_harmless)
{
	struct rig rig;
	rig_open(&rig, NULL);
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
		expect_eq(tw_group_close(rig.service, stale[i]), -ENOENT);
		expect_eq(tw_group_destroy(rig.service, stale[i]), -ENOENT);
		expect_eq(tw_group_stats(rig.service, stale[i], &stats), -ENOENT);
		if (stale[i].id)
			expect_eq(schedule_in(&late, stale[i], MS, true), -ENOENT);
	}
	rig_advance(&rig, SECOND);
	expect_eq(rig.ran, 0);
	expect_released(&member, TW_FATE_CANCELLED);
	expect_eq(late.releases, 0);
	rig_close(&rig);
}

/* The index of a destroyed group is used again, but only when its last member has ended. */
Test(group_end, storage_lives_until_the_last_member_is_reaped)
{
	struct rig rig;
	rig_open(&rig, NULL);
	tw_group group = group_of(&rig);
	struct probe member = PROBE(&rig, 1), later = PROBE(&rig, 2);
	expect_eq(schedule_in(&member, group, MS, true), 0);
	expect_eq(tw_group_destroy(rig.service, group), 0);
	tw_group second = group_of(&rig);
	expect_ne(second.id & 0xffffff, group.id & 0xffffff);
	rig_advance(&rig, MS);
	expect_released(&member, TW_FATE_CANCELLED);
	tw_group third = group_of(&rig);
	expect_eq(third.id & 0xffffff, group.id & 0xffffff);
	expect_ne(third.id, group.id);
	expect_eq(schedule_in(&later, third, MS, true), 0);
	expect_eq(tw_group_cancel(rig.service, group), -ENOENT);
	rig_advance(&rig, SECOND);
	expect_released(&later, TW_FATE_FIRED);
	rig_close(&rig);
}

Test(group_end, an_empty_group_stays_its_owners)
{
	struct rig rig;
	rig_open(&rig, NULL);
	tw_group group = group_of(&rig);
	struct probe first = PROBE(&rig, 1), second = PROBE(&rig, 2);
	expect_eq(schedule_in(&first, group, MS, true), 0);
	rig_advance(&rig, MS);
	expect_eq(gauges(&rig, group).members, 0);
	tw_group other = group_of(&rig);
	expect_ne(other.id & 0xffffff, group.id & 0xffffff);
	expect_eq(schedule_in(&second, group, MS, true), 0);
	expect_eq(tw_group_cancel(rig.service, other), 0);
	rig_advance(&rig, MS);
	expect_released(&second, TW_FATE_FIRED);
	rig_close(&rig);
}

Test(group_end, groups_can_be_made_and_destroyed_without_end)
{
	struct rig rig;
	rig_open(&rig, NULL);
	tw_group first = group_of(&rig);
	for (int i = 0; i < 200000; i++) {
		tw_group group = group_of(&rig);
		expect_ne(group.id, first.id);
		expect_eq(tw_group_destroy(rig.service, group), 0);
	}
	rig_close(&rig);
}

Test(group_end, there_are_at_most_so_many)
{
	struct rig rig;
	struct tw_service_config cfg = rig_config();
	cfg.max_timers = 10;
	rig_open(&rig, &cfg);
	tw_group group = {0}, none = {7};
	for (int i = 0; i < 65536; i++)
		expect_eq(tw_group_create(&group, rig.service), 0);
	expect_eq(tw_group_create(&none, rig.service), -EAGAIN);
	expect_eq(none.id, 7);
	expect_eq(tw_group_destroy(rig.service, group), 0);
	expect_eq(tw_group_create(&none, rig.service), 0);
	rig_close(&rig);
}

Test(group_end, bad_arguments_are_refused)
{
	struct rig rig;
	rig_open(&rig, NULL);
	tw_group group = group_of(&rig);
	struct tw_group_stats stats = {.size = sizeof(stats)}, small = {.size = sizeof(size_t)};
	expect_eq(tw_group_create(&group, NULL), -EINVAL);
	expect_eq(tw_group_create(NULL, rig.service), -EINVAL);
	expect_eq(tw_group_cancel(NULL, group), -EINVAL);
	expect_eq(tw_group_cancel_wait(NULL, group, 0), -EINVAL);
	expect_eq(tw_group_close(NULL, group), -EINVAL);
	expect_eq(tw_group_destroy(NULL, group), -EINVAL);
	expect_eq(tw_group_stats(NULL, group, &stats), -EINVAL);
	expect_eq(tw_group_stats(rig.service, group, NULL), -EINVAL);
	expect_eq(tw_group_stats(rig.service, group, &small), -EINVAL);
	struct {
		struct tw_group_stats known;
		uint64_t beyond;
	} newer = {{.size = sizeof(newer), .members = 9, .running = 9}, 9};
	expect_eq(tw_group_stats(rig.service, group, &newer.known), 0);
	expect_eq(newer.known.members + newer.known.running + newer.beyond, 0);
	rig_close(&rig);
}

/*
 * ------------------------------------------------------------ executors that refuse, or give back
 */

static void cancel_with_executor(size_t refuse, int give_back)
{
	struct queue_executor queue;
	queue_executor_open(&queue);
	struct tw_service_config cfg = rig_config();
	cfg.executor = &queue.base;
	struct rig rig;
	rig_open(&rig, &cfg);
	tw_group group = group_of(&rig);
	struct probe member = PROBE(&rig, 1);
	expect_eq(schedule_in(&member, group, HOUR, true), 0);
	rig_advance(&rig, MS);
	expect_eq(tw_group_cancel(rig.service, group), 0);
	queue.refuse = refuse;
	for (int i = 0; i < 5 && !member.releases; i++) {
		rig_advance(&rig, MS);
		if (give_back-- > 0)
			queue_executor_drop_next(&queue);
		else
			queue_executor_run_all(&queue);
	}
	expect_released(&member, TW_FATE_CANCELLED);
	expect_eq(stats_of(rig.service).cancelled, 1);
	queue_executor_close(&queue);
	rig_close(&rig);
}

Test(group_end, reaping_that_is_refused_is_offered_again)
{
	cancel_with_executor(2, 0);
}

/* Members run on their own executors. The service's own executor reaps the cancelled ones. */
Test(group_end, members_of_other_executors_are_reaped_by_the_services)
{
	struct queue_executor own, other;
	queue_executor_open(&own);
	queue_executor_open(&other);
	struct tw_service_config cfg = rig_config();
	cfg.executor = &own.base;
	struct rig rig;
	rig_open(&rig, &cfg);
	tw_group group = group_of(&rig);
	struct probe runs = PROBE(&rig, 1), met = PROBE(&rig, 2), later = PROBE(&rig, 3);
	struct probe *members[] = {&runs, &met, &later};
	for (uint64_t i = 0; i < 3; i++) {
		struct tw_task task = probe_task(members[i]);
		task.when_ns = (1 + i) * 10 * MS;
		task.executor = &other.base;
		task.group = group;
		probe_schedule_task(members[i], &task);
	}
	rig_advance(&rig, 10 * MS);
	expect_eq(queue_executor_run_all(&own), 0);
	expect_eq(queue_executor_run_all(&other), 1);
	expect_released(&runs, TW_FATE_FIRED);
	rig_advance(&rig, 10 * MS);
	expect_eq(tw_group_cancel(rig.service, group), 0);
	expect_eq(queue_executor_run_all(&other), 0); /* handed over before, and met by its claim */
	expect_released(&met, TW_FATE_CANCELLED);
	rig_advance(&rig, MS);
	expect_eq(queue_executor_waiting(&other), 0);
	expect_eq(later.releases, 0);
	expect_eq(queue_executor_run_all(&own), 0);
	expect_released(&later, TW_FATE_CANCELLED);
	queue_executor_close(&own);
	queue_executor_close(&other);
	rig_close(&rig);
}

Test(group_end, reaping_that_is_given_back_is_handed_over_again)
{
	cancel_with_executor(0, 2);
}

/* The thread that closes ends the runs that an executor always refuses. */
Test(group_end, close_reaps_what_the_executor_refuses)
{
	struct queue_executor queue;
	queue_executor_open(&queue);
	queue.refuse = SIZE_MAX;
	struct tw_service_config cfg = rig_config();
	cfg.executor = &queue.base;
	struct rig rig;
	rig_open(&rig, &cfg);
	tw_group group = group_of(&rig);
	struct probe member = PROBE(&rig, 1), doomed = PROBE(&rig, 2), other = PROBE(&rig, 3);
	expect_eq(schedule_in(&member, group, HOUR, true), 0);
	expect_eq(schedule_in(&doomed, group, HOUR, true), 0);
	probe_schedule_released(&other, HOUR);
	expect_eq(tw_group_cancel(rig.service, group), 0);
	expect_eq(tw_cancel(rig.service, doomed.timer), TW_GONE);
	rig_advance(&rig, SECOND);
	expect_eq(member.releases, 0);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, TW_FOREVER), 0);
	expect_released(&member, TW_FATE_CANCELLED);
	expect_released(&doomed, TW_FATE_CANCELLED);
	expect_released(&other, TW_FATE_DROPPED);
	expect_eq(stats_of(rig.service).cancelled, 2);
	expect_eq(stats_of(rig.service).dropped, 1);
	queue_executor_close(&queue);
	rig_close(&rig);
}

/* ------------------------------------------------------------ close of the service */

static void close_with_groups(enum tw_close_mode mode, bool pending_too)
{
	struct rig rig;
	rig_open(&rig, NULL);
	tw_group group = group_of(&rig), live = group_of(&rig);
	struct probe stale = PROBE(&rig, 1), doomed = PROBE(&rig, 2), series = PROBE(&rig, 3),
		     pending = PROBE(&rig, 4);
	expect_eq(schedule_in(&stale, group, HOUR, true), 0);
	expect_eq(schedule_in(&doomed, group, HOUR, true), 0);
	expect_eq(schedule_series_in(&series, group, rate_of(MS, MS, 0)), 0);
	if (pending_too)
		expect_eq(schedule_in(&pending, live, HOUR, true), 0);
	expect_eq(tw_group_cancel(rig.service, group), 0);
	expect_eq(tw_cancel(rig.service, doomed.timer), TW_GONE);
	expect_eq(tw_service_close(rig.service, mode, TW_FOREVER), 0);
	expect_released(&stale, TW_FATE_CANCELLED);
	expect_released(&doomed, TW_FATE_CANCELLED);
	expect_released(&series, TW_FATE_CANCELLED);
	expect_eq(stats_of(rig.service).cancelled, 3);
	expect_eq(rig.ran, mode == TW_CLOSE_RUN);
	if (pending_too)
		expect_released(&pending, mode == TW_CLOSE_RUN ? TW_FATE_FIRED : TW_FATE_DROPPED);
	expect_eq(schedule_in(&pending, live, MS, true), -ESHUTDOWN);
	expect_eq(tw_group_create(&group, rig.service), -ESHUTDOWN);
	expect_eq(tw_group_cancel(rig.service, live), 0);
	expect_eq(tw_group_cancel_wait(rig.service, live, TW_FOREVER), 0);
	expect_eq(tw_group_destroy(rig.service, live), 0);
	rig_close(&rig);
}

Test(group_end, is_reaped_by_close_that_drops)
{
	close_with_groups(TW_CLOSE_DROP, true);
}

Test(group_end, is_reaped_by_close_that_runs)
{
	close_with_groups(TW_CLOSE_RUN, true);
}

/* Cancelled members need no clock: nobody would wait for itself. */
Test(group_end, is_reaped_by_close_that_drains)
{
	close_with_groups(TW_CLOSE_DRAIN, false);
}

/* ------------------------------------------------------------ in pieces */

/* One tw_service_advance reaps a bounded piece; the rest follows, and nothing is due meanwhile. */
Test(group_end, is_reaped_in_pieces)
{
	struct rig rig;
	rig_open(&rig, NULL);
	tw_group group = group_of(&rig);
	enum { COUNT = 5000, PIECE = 256 };
	for (int i = 0; i < COUNT; i++) {
		struct tw_task task = {
		    .size = sizeof(task), .fn = probe_run, .when_ns = HOUR, .group = group};
		expect_eq(tw_schedule_task(rig.service, &task, NULL), 0);
	}
	expect_eq(tw_group_cancel(rig.service, group), 0);
	int turns = 0;
	for (uint64_t left = COUNT, before; left; turns++) {
		before = left;
		expect_ge(tw_service_advance(rig.service, TW_NO_LIMIT), 0);
		left = gauges(&rig, group).members;
		expect_lt(left, before);
		expect_le(before - left, PIECE);
	}
	expect_ge(turns, COUNT / PIECE);
	expect_sound(rig.service);
	rig_close(&rig);
}

/* Many small groups: what one poll reaps is bounded too. */
Test(group_end, many_groups_are_reaped_over_turns)
{
	struct rig rig;
	rig_open(&rig, NULL);
	enum { COUNT = 500, A_TURN = 64 };
	static tw_group groups[COUNT];
	static struct probe probes[COUNT];
	for (int i = 0; i < COUNT; i++) {
		probes[i] = PROBE(&rig, i);
		groups[i] = group_of(&rig);
		expect_eq(schedule_in(&probes[i], groups[i], HOUR, true), 0);
	}
	for (int i = 0; i < COUNT; i++)
		expect_eq(tw_group_destroy(rig.service, groups[i]), 0);
	expect_ge(tw_service_advance(rig.service, TW_NO_LIMIT), 0);
	int reaped = 0;
	for (int i = 0; i < COUNT; i++)
		reaped += probes[i].releases;
	expect_gt(reaped, 0);
	expect_le(reaped, A_TURN);
	rig_advance(&rig, MS); /* to the end, in one tick */
	for (int i = 0; i < COUNT; i++)
		expect_released(&probes[i], TW_FATE_CANCELLED);
	rig_close(&rig);
}

/* ------------------------------------------------- releases that end other members */

static void cancel_other(struct probe *probe)
{
	probe->answer = tw_cancel(probe->rig->service, probe->other->timer);
}

static void cancel_other_and_wait(struct probe *probe)
{
	probe->answer = tw_cancel_wait(probe->rig->service, probe->other->timer, TW_FOREVER);
}

/* The other member is this thread's to end later. It is not running, and can be ended now. */
Test(group_end, release_can_cancel_another_member_of_the_same_reap)
{
	void (*const acts[])(struct probe * probe) = {cancel_other, cancel_other_and_wait};
	for (int i = 0; i < 2; i++) {
		struct rig rig;
		rig_open(&rig, NULL);
		tw_group group = group_of(&rig);
		struct probe first = PROBE(&rig, 1), second = PROBE(&rig, 2);
		first.act_in_release = acts[i];
		first.other = &second;
		expect_eq(schedule_in(&first, group, HOUR, true), 0);
		expect_eq(schedule_in(&second, group, HOUR, true), 0);
		expect_eq(tw_group_cancel(rig.service, group), 0);
		rig_advance(&rig, MS);
		expect_eq(first.answer, TW_GONE);
		expect_released(&first, TW_FATE_CANCELLED);
		expect_released(&second, TW_FATE_CANCELLED);
		expect_eq(tw_group_destroy(rig.service, group), 0);
		rig_close(&rig);
	}
}
