/*
 * The virtual clock: time passes only by a call. Actions run in the order of time and arming, or of
 * a seed.
 */
#include <string.h>

#include "test/support/actions.h"

TestSuite(action_virtual, .timeout = 30);

static tw_action_scheduler *open_virtual(uint64_t max_frames, uint64_t frame_ns, uint64_t seed)
{
	return scheduler_of(
	    &(struct tw_action_scheduler_config){.size = sizeof(struct tw_action_scheduler_config),
						 .kind = TW_ACTION_KIND_VIRTUAL,
						 .max_frames = max_frames,
						 .frame_ns = frame_ns,
						 .seed = seed});
}

Test(action_virtual, runs_in_order_of_time_and_arming_each_at_its_own_time)
{
	tw_action_scheduler *clock = open_virtual(0, 0, 0);
	struct log log = {0};
	const uint64_t delays_ms[] = {30, 10, 20, 10, 0, 20};
	struct work works[6] = {{0}};
	for (int i = 0; i < 6; i++) {
		works[i] = (struct work){.log = &log, .id = i};
		work_schedule(&works[i], clock, delays_ms[i] * MS);
	}
	expect_eq(tw_action_scheduler_now(clock), 0);
	expect_eq(tw_action_scheduler_flush(clock), 0);
	expect_log(&log, 4, 1, 3, 2, 5, 0);
	for (int i = 0; i < 6; i++)
		expect_eq(log.at_ns[i], delays_ms[log.ids[i]] * MS);
	expect_eq(tw_action_scheduler_now(clock), 30 * MS);
	works_destroy(works, 6, clock);
}

Test(action_virtual, advances_by_and_to_and_not_back)
{
	tw_action_scheduler *clock = open_virtual(0, 0, 0);
	struct work work = {.rearms = 1000000, .delay_ns = 10 * MS};
	work_schedule(&work, clock, 10 * MS);
	expect_eq(tw_action_scheduler_advance(clock, 9 * MS), 0);
	expect_eq(work.runs, 0);
	expect_eq(tw_action_scheduler_now(clock), 9 * MS);
	expect_eq(tw_action_scheduler_advance(clock, MS), 0);
	expect_eq(work.runs, 1);
	expect_eq(tw_action_scheduler_advance_to(clock, 105 * MS), 0);
	expect_eq(work.runs, 10);
	expect_eq(tw_action_scheduler_now(clock), 105 * MS);
	expect_eq(tw_action_scheduler_advance_to(clock, 50 * MS), 0);
	expect_eq(tw_action_scheduler_now(clock), 105 * MS);
	expect_eq(tw_action_scheduler_advance(clock, HOUR), 0);
	expect_eq(work.runs, 10 + 360000);
	works_destroy(&work, 1, clock);
}

Test(action_virtual, flush_goes_up_to_a_limit_of_frames)
{
	tw_action_scheduler *clock = open_virtual(10, 5 * MS, 0);
	struct work endless = {.rearms = 1 << 30, .delay_ns = 7 * MS}, at_limit = {0}, beyond = {0};
	work_schedule(&endless, clock, 7 * MS);
	work_schedule(&at_limit, clock, 50 * MS);
	work_schedule(&beyond, clock, 51 * MS);
	expect_eq(tw_action_scheduler_flush(clock), 0);
	expect_eq(endless.runs, 7);
	expect_eq(at_limit.runs, 1);
	expect_eq(beyond.runs, 0);
	expect_eq(tw_action_scheduler_now(clock), 50 * MS);
	expect_eq(tw_action_state(beyond.action), TW_ACTION_STATE_ARMED);
	tw_action_destroy(endless.action);
	tw_action_destroy(at_limit.action);
	works_destroy(&beyond, 1, clock);
}

Test(action_virtual, what_is_armed_at_the_present_instant_runs_in_it_after_what_was_there)
{
	tw_action_scheduler *clock = open_virtual(0, 0, 0);
	struct log log = {0};
	struct work first = {.log = &log, .id = 1, .rearms = 1}, second = {.log = &log, .id = 2},
		    third = {.log = &log, .id = 3};
	work_schedule(&first, clock, MS);
	work_schedule(&second, clock, MS);
	work_schedule(&third, clock, 2 * MS);
	expect_eq(tw_action_scheduler_advance(clock, MS), 0);
	expect_log(&log, 1, 2, 1);
	tw_action_destroy(first.action);
	tw_action_destroy(second.action);
	works_destroy(&third, 1, clock);
}

enum { TIES = 32 };

static void run_ties(uint64_t seed, struct log *log)
{
	tw_action_scheduler *clock = open_virtual(0, 0, seed);
	struct work works[TIES];
	log->count = 0;
	for (int i = 0; i < TIES; i++) {
		works[i] = (struct work){.log = log, .id = i};
		work_schedule(&works[i], clock, (uint64_t)(i % 2 + 1) * MS);
	}
	expect_eq(tw_action_scheduler_flush(clock), 0);
	expect_eq(log->count, TIES);
	for (int i = 0; i < TIES; i++)
		expect_eq(log->ids[i] % 2, i >= TIES / 2); /* time comes first, whatever the seed */
	works_destroy(works, TIES, clock);
}

Test(action_virtual, seed_permutes_ties_and_the_same_seed_alike)
{
	struct log plain, one, again, two;
	run_ties(0, &plain);
	run_ties(1, &one);
	run_ties(1, &again);
	run_ties(2, &two);
	for (int i = 0; i < TIES; i++)
		expect_eq(plain.ids[i], i < TIES / 2 ? 2 * i : 2 * (i - TIES / 2) + 1);
	cr_assert(memcmp(one.ids, again.ids, sizeof(int) * TIES) == 0);
	cr_assert(memcmp(one.ids, two.ids, sizeof(int) * TIES) != 0);
	cr_assert(memcmp(one.ids, plain.ids, sizeof(int) * TIES) != 0);
}

Test(action_virtual, failure_closes_what_is_due_at_its_instant_and_the_rest_goes_on)
{
	tw_action_scheduler *clock = scheduler_of(
	    &(struct tw_action_scheduler_config){.size = sizeof(struct tw_action_scheduler_config),
						 .kind = TW_ACTION_KIND_VIRTUAL,
						 .flags = TW_ACTION_FLAG_CANCEL_BATCH});
	struct log log = {0};
	struct work works[5] = {{.log = &log, .id = 0},
				{.log = &log, .id = 1, .answer = 23},
				{.log = &log, .id = 2},
				{.log = &log, .id = 3},
				{.log = &log, .id = 4}};
	const uint64_t delays_ms[] = {1, 2, 2, 2, 3};
	for (int i = 0; i < 5; i++)
		work_schedule(&works[i], clock, delays_ms[i] * MS);
	expect_eq(tw_action_scheduler_advance(clock, SECOND), 23);
	expect_log(&log, 0, 1);
	expect_eq(tw_action_scheduler_now(clock), 2 * MS);
	for (int i = 0; i < 5; i++)
		expect_eq(tw_action_state(works[i].action) == TW_ACTION_STATE_CLOSED,
			  i >= 1 && i <= 3);
	expect_eq(tw_action_scheduler_advance_to(clock, SECOND), 0);
	expect_log(&log, 0, 1, 4);
	expect_eq(action_stats(clock).closed_by_failure, 2);
	works_destroy(works, 5, clock);
}

static void drive_inside(struct work *work)
{
	work->other_answer = tw_action_scheduler_advance(work->scheduler, SECOND);
	work->error = tw_action_scheduler_flush(work->scheduler);
}

Test(action_virtual, is_not_driven_from_inside_itself)
{
	tw_action_scheduler *clock = open_virtual(0, 0, 0);
	struct work work = {.act = drive_inside};
	work_schedule(&work, clock, MS);
	expect_eq(tw_action_scheduler_advance(clock, MS), 0);
	expect_eq(work.other_answer, -EBUSY);
	expect_eq(work.error, -EBUSY);
	expect_eq(tw_action_scheduler_now(clock), MS);
	works_destroy(&work, 1, clock);
}

Test(action_virtual, closing_and_moving_what_waits)
{
	tw_action_scheduler *clock = open_virtual(0, 0, 0);
	struct log log = {0};
	struct work works[3] = {
	    {.log = &log, .id = 0}, {.log = &log, .id = 1}, {.log = &log, .id = 2}};
	for (int i = 0; i < 3; i++)
		work_schedule(&works[i], clock, (uint64_t)(i + 1) * MS);
	expect_eq(tw_action_close(works[1].action, 0), TW_CANCELLED);
	tw_action_schedule(works[0].action, &works[0], 10 * MS);
	expect_eq(action_stats(clock).armed, 2);
	expect_eq(tw_action_scheduler_flush(clock), 0);
	expect_log(&log, 2, 0);
	works_destroy(works, 3, clock);
}
