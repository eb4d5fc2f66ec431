/*
 * asap and frame: one batch source. What was armed before a flush is run by it, and nothing else.
 */
#include "test/support/action_suite.h"
#include "wheel/core/service.h"

TestSuite(action_batch, .fini = close_left, .timeout = 30);

static const enum tw_action_kind kinds[] = {TW_ACTION_KIND_ASAP, TW_ACTION_KIND_FRAME};

Test(action_batch, shares_one_turn_of_the_host)
{
	for (int k = 0; k < 2; k++) {
		struct work works[4] = {{0}};
		open_by_caller(kinds[k], 0);
		for (int i = 0; i < 4; i++) {
			works[i] = (struct work){.log = &notes, .id = i};
			arm(&works[i], 0);
		}
		expect_eq(turns_wanted, 1);
		expect_eq(notes.count, 0);
		expect_eq(tw_action_scheduler_flush(scheduler), 0);
		expect_log(&notes, 0, 1, 2, 3);
		expect_eq(tw_action_scheduler_flush(scheduler), 0);
		expect_eq(notes.count, 4);
		expect_eq(turns_unwanted, 0);
		expect_eq(action_stats(scheduler).flushes, 1);
		close_scheduler();
	}
}

Test(action_batch, leaves_what_arrives_during_the_flush_to_the_next)
{
	for (int k = 0; k < 2; k++) {
		struct work works[2] = {{.log = &notes, .id = 1, .rearms = 2},
					{.log = &notes, .id = 2}};
		open_by_caller(kinds[k], 0);
		arm(&works[0], 0);
		arm(&works[1], 0);
		expect_eq(tw_action_scheduler_flush(scheduler), 0);
		expect_log(&notes, 1, 2);
		expect_eq(turns_wanted, 2);
		expect_eq(tw_action_scheduler_flush(scheduler), 0);
		expect_log(&notes, 1, 2, 1);
		expect_eq(tw_action_scheduler_flush(scheduler), 0);
		expect_eq(notes.count, 4);
		expect_eq(turns_wanted, 3);
		close_scheduler();
	}
}

static void close_other(struct work *work)
{
	tw_action_close(work->other->action, 0);
}

static void rearm_and_close_other(struct work *work)
{
	if (work->runs == 1)
		tw_action_schedule(work->action, work, 0);
	tw_action_close(work->other->action, 0);
}

/*
 * "Run the first n": the place of the closed one would be taken by what was armed during the flush.
 */
Test(action_batch, cancelling_inside_a_flush_pulls_no_later_action_in)
{
	struct work works[3] = {
	    {.log = &notes, .id = 1, .act = rearm_and_close_other, .other = &works[1]},
	    {.log = &notes, .id = 2},
	    {.log = &notes, .id = 3}};
	open_by_caller(TW_ACTION_KIND_ASAP, 0);
	for (int i = 0; i < 3; i++)
		arm(&works[i], 0);
	expect_eq(tw_action_scheduler_flush(scheduler), 0);
	expect_log(&notes, 1, 3);
	expect_eq(tw_action_scheduler_flush(scheduler), 0);
	expect_log(&notes, 1, 3, 1);
}

Test(action_batch, calls_its_turn_off_when_the_last_one_is_cancelled)
{
	struct work works[3] = {{0}};
	open_by_caller(TW_ACTION_KIND_FRAME, 0);
	for (int i = 0; i < 2; i++)
		arm(&works[i], 0);
	expect_eq(tw_action_close(works[0].action, 0), TW_CANCELLED);
	expect_eq(turns_unwanted, 0);
	expect_eq(tw_action_close(works[1].action, 0), TW_CANCELLED);
	expect_eq(turns_unwanted, 1);
	expect_eq(action_stats(scheduler).turns_cancelled, 1);
	arm(&works[2], 0);
	expect_eq(turns_wanted, 2);
	expect_eq(tw_action_scheduler_flush(scheduler), 0);
	expect_eq(works[0].runs + works[1].runs, 0);
	expect_eq(works[2].runs, 1);
}

Test(action_batch, cancelled_to_its_end_inside_its_flush_leaves_the_next_turn_alone)
{
	struct work works[2] = {
	    {.log = &notes, .id = 1, .act = rearm_and_close_other, .other = &works[1]},
	    {.log = &notes, .id = 2}};
	open_by_caller(TW_ACTION_KIND_ASAP, 0);
	arm(&works[0], 0);
	arm(&works[1], 0);
	expect_eq(tw_action_scheduler_flush(scheduler), 0);
	expect_eq(turns_wanted, 2);
	expect_eq(turns_unwanted, 0);
	expect_eq(tw_action_scheduler_flush(scheduler), 0);
	expect_log(&notes, 1, 1);
}

Test(action_batch, armed_again_before_its_turn_runs_once_and_asks_once)
{
	struct work first = {.log = &notes, .id = 1}, second = {.log = &notes, .id = 2};
	open_by_caller(TW_ACTION_KIND_ASAP, 0);
	arm(&first, 0);
	second.scheduler = scheduler;
	tw_action_schedule(first.action, &second, 0);
	expect_eq(turns_wanted, 1);
	expect_eq(turns_unwanted, 0);
	expect_eq(tw_action_scheduler_flush(scheduler), 0);
	expect_log(&notes, 2);
}

static void arm_other(struct work *work)
{
	work->error = tw_action_schedule(work->other->action, work->other, 0);
}

Test(action_batch, that_fails_closes_its_rest_spares_the_next_and_returns_the_failure)
{
	struct work works[4] = {
	    {.log = &notes, .id = 0},
	    {.log = &notes, .id = 1, .act = arm_other, .other = &works[3], .answer = 17},
	    {.log = &notes, .id = 2},
	    {.log = &notes, .id = 3}};
	open_by_caller(TW_ACTION_KIND_ASAP, TW_ACTION_FLAG_CANCEL_BATCH);
	for (int i = 0; i < 3; i++)
		arm(&works[i], 0);
	works[3].scheduler = scheduler;
	expect_eq(tw_action_create(&works[3].action, scheduler, work_run, NULL), 0);
	expect_eq(tw_action_scheduler_flush(scheduler), 17);
	expect_log(&notes, 0, 1);
	expect_eq(tw_action_state(works[1].action), TW_ACTION_STATE_CLOSED);
	expect_eq(tw_action_state(works[2].action), TW_ACTION_STATE_CLOSED);
	expect_ne(tw_action_state(works[0].action), TW_ACTION_STATE_CLOSED);
	expect_ne(tw_action_state(works[3].action), TW_ACTION_STATE_CLOSED);
	expect_eq(tw_action_scheduler_flush(scheduler), 0);
	expect_log(&notes, 0, 1, 3);
	works[0].error = tw_action_schedule(works[0].action, &works[0], 0);
	expect_eq(tw_action_scheduler_flush(scheduler), 0);
	expect_log(&notes, 0, 1, 3, 0);
	tw_action_destroy(works[3].action);
}

static void flush_inside(struct work *work)
{
	work->other_answer = tw_action_scheduler_flush(work->scheduler);
}

Test(action_batch, is_not_flushed_from_inside_itself)
{
	struct work work = {.act = flush_inside};
	open_by_caller(TW_ACTION_KIND_ASAP, 0);
	arm(&work, 0);
	expect_eq(tw_action_scheduler_flush(scheduler), 0);
	expect_eq(work.other_answer, -EBUSY);
	expect_eq(work.runs, 1);
}

/* ------------------------------------------------------ asap on an executor */

Test(action_batch, asap_takes_one_turn_of_the_executor)
{
	open_queued(TW_ACTION_KIND_ASAP);
	struct work works[3] = {{.log = &notes, .id = 1, .act = close_other, .other = &works[1]},
				{.log = &notes, .id = 2},
				{.log = &notes, .id = 3, .rearms = 1}};
	for (int i = 0; i < 3; i++)
		arm(&works[i], 0);
	expect_eq(queue_executor_waiting(&tickets), 1);
	expect_eq(queue_executor_run_next(&tickets), 1);
	expect_log(&notes, 1, 3);
	expect_eq(queue_executor_waiting(&tickets), 1);
	expect_eq(tw_action_close(works[2].action, 0), TW_CANCELLED);
	expect_eq(action_stats(scheduler).turns_cancelled, 1);
	expect_eq(queue_executor_run_next(&tickets), 1); /* finds that nobody wants it */
	expect_eq(notes.count, 2);
	expect_eq(action_stats(scheduler).flushes, 1);
}

Test(action_batch, asap_on_the_inline_executor_runs_in_the_next_advance)
{
	open_on(TW_ACTION_KIND_ASAP);
	struct work work = {.log = &notes, .id = 1, .rearms = 1}, late = {.log = &notes, .id = 2};
	arm(&late, 5 * MS);
	arm(&work, 0);
	expect_eq(notes.count, 0);
	rig_advance(&rig, MS);
	rig_advance(&rig, MS);
	expect_log(&notes, 1, 1);
	rig_advance(&rig, SECOND);
	expect_log(&notes, 1, 1, 2);
	expect_eq(notes.at_ns[2], RIG_START_NS + 5 * MS);
}

Test(action_batch, destroyed_before_its_turn_lets_go_of_the_service_when_it_has_come)
{
	open_queued(TW_ACTION_KIND_ASAP);
	struct work work = {0};
	arm(&work, 0);
	expect_eq(tw_action_scheduler_destroy(scheduler), -EBUSY);
	close_scheduler();
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, 0), -ETIMEDOUT);
	expect_eq(queue_executor_run_next(&tickets), 1);
	expect_eq(work.runs, 0);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, 0), 0);
}

/* The executor never takes the turn of before, so the driver does the rest. */
Test(action_batch, destroyed_on_an_executor_that_refuses_for_good_lets_go_of_the_service)
{
	struct work work = {0};
	open_queued(TW_ACTION_KIND_ASAP);
	tickets.refuse = SIZE_MAX;
	arm(&work, 0);
	rig_advance(&rig, 2 * MS);
	close_scheduler();
	expect_eq(work.runs, 0);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, 0), 0);
}

/* ---------------------------------------------------- frames of the service */

Test(action_batch, frames_come_at_their_instants_without_drift)
{
	open_on(TW_ACTION_KIND_FRAME);
	struct work work = {.log = &notes, .id = 1, .rearms = 1199};
	arm(&work, 0);
	rig_advance(&rig, 30 * SECOND);
	expect_eq(notes.count, 1200);
	for (int i = 0; i < notes.count; i++) {
		uint64_t frame_ns = RIG_START_NS + (uint64_t)(i + 1) * SECOND / 60;
		expect_ge(notes.at_ns[i], frame_ns);
		expect_le(notes.at_ns[i], frame_ns + MS);
	}
}

Test(action_batch, frames_that_are_past_are_left_out)
{
	struct work work = {.log = &notes, .id = 1, .rearms = 3, .slow_ns = 35 * MS, .rig = &rig};
	open_with((struct tw_action_scheduler_config){.kind = TW_ACTION_KIND_FRAME,
						      .frames_per_second = 100});
	arm(&work, 0);
	rig_advance(&rig, SECOND);
	expect_eq(notes.count, 4);
	for (int i = 0; i < 4; i++)
		expect_eq(notes.at_ns[i], RIG_START_NS + (10 + (uint64_t)i * 40) * MS);
}

Test(action_batch, frame_timer_is_cancelled_with_the_last_action)
{
	open_on(TW_ACTION_KIND_FRAME);
	struct work works[2] = {{0}};
	arm(&works[0], 0);
	arm(&works[1], 0);
	expect_eq(stats_of(rig.service).pending, 1);
	tw_action_close(works[0].action, 0);
	expect_eq(stats_of(rig.service).pending, 1);
	tw_action_close(works[1].action, 0);
	expect_eq(stats_of(rig.service).pending, 0);
}

Test(action_batch, failure_of_a_frame_that_nobody_drives_is_told)
{
	struct work works[3] = {{.answer = 3}, {0}, {0}};
	open_with((struct tw_action_scheduler_config){.kind = TW_ACTION_KIND_FRAME,
						      .flags = TW_ACTION_FLAG_CANCEL_BATCH});
	for (int i = 0; i < 3; i++)
		arm(&works[i], 0);
	rig_advance(&rig, SECOND);
	expect_eq(failed.count, 1);
	expect_eq(failed.failure, 3);
	expect_eq(failed.closed, 2);
	expect_eq(works[1].runs + works[2].runs, 0);
}
