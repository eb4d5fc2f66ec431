/* Actions on a timer service: arming, phase, closing, failure. */
#include "test/support/action_suite.h"
#include "test/support/members.h"
#include "wheel/core/service.h"

TestSuite(action, .fini = close_left, .timeout = 30);

static uint64_t pending(void)
{
	return stats_of(rig.service).pending;
}

/* -------------------------------------------------------------------- runs */

Test(action, runs_once_after_its_delay)
{
	struct work work = {.log = &notes, .id = 1};
	open_on(TW_ACTION_KIND_ASYNC);
	arm(&work, 5 * MS);
	expect_eq(tw_action_state(work.action), TW_ACTION_STATE_ARMED);
	rig_advance(&rig, 4 * MS);
	expect_eq(work.runs, 0);
	rig_advance(&rig, SECOND);
	expect_log(&notes, 1);
	expect_eq(notes.at_ns[0], RIG_START_NS + 5 * MS);
	expect_eq(tw_action_state(work.action), TW_ACTION_STATE_IDLE);
}

Test(action, that_does_not_rearm_leaves_no_timer_and_can_be_armed_again)
{
	struct work work = {.log = &notes, .id = 1};
	open_on(TW_ACTION_KIND_ASYNC);
	arm(&work, MS);
	rig_advance(&rig, MS);
	expect_eq(work.runs, 1);
	expect_eq(pending(), 0);
	work.error = tw_action_schedule(work.action, &work, 3 * MS);
	expect_eq(work.error, 0);
	expect_eq(pending(), 1);
	rig_advance(&rig, SECOND);
	expect_eq(work.runs, 2);
	expect_eq(notes.at_ns[1], RIG_START_NS + 4 * MS);
}

static void arm_twice(struct work *work)
{
	if (work->runs > 1)
		return;
	tw_action_schedule(work->action, work, 10 * MS);
	tw_action_schedule(work->action, work, 10 * MS);
}

/* An action that is armed for 10 ms and arms itself again in its runs, which take some time. */
Test(action, phases)
{
	static const struct {
		const char *name;
		int rearms;
		uint64_t delay_ms, slow_ms;
		void (*act)(struct work *work);
		int runs;
		uint64_t first_ms, interval_ms;
	} rows[] = {
	    {"rearmed with the same delay, it keeps its phase", 9, 10, 3, NULL, 10, 10, 10},
	    {"held up, it leaves out instants and keeps its phase", 3, 10, 25, NULL, 4, 10, 30},
	    {"rearmed with another delay, it starts anew", 1, 20, 3, NULL, 2, 10, 3 + 20},
	    {"rearmed twice in a run, it has one next run in phase", 0, 0, 3, arm_twice, 2, 10, 10},
	};
	for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
		struct work work = {.log = &notes,
				    .rearms = rows[row].rearms,
				    .delay_ns = rows[row].delay_ms * MS,
				    .slow_ns = rows[row].slow_ms * MS,
				    .act = rows[row].act,
				    .rig = &rig};
		open_on(TW_ACTION_KIND_ASYNC);
		arm(&work, 10 * MS);
		rig_advance(&rig, SECOND);
		cr_assert(notes.count == rows[row].runs, "%s: %d runs", rows[row].name,
			  notes.count);
		for (int i = 0; i < notes.count; i++)
			cr_assert(
			    notes.at_ns[i] ==
				RIG_START_NS +
				    (rows[row].first_ms + (uint64_t)i * rows[row].interval_ms) * MS,
			    "%s: run %d", rows[row].name, i);
		close_left();
	}
}

Test(action, armed_again_before_its_run_gets_the_new_state_and_delay_and_no_second_timer)
{
	struct work first = {.log = &notes, .id = 1}, second = {.log = &notes, .id = 2};
	open_on(TW_ACTION_KIND_ASYNC);
	arm(&first, 5 * MS);
	second.scheduler = scheduler;
	for (uint64_t delay_ns = 9; delay_ns >= 2; delay_ns--) {
		tw_action_schedule(first.action, &second, delay_ns * MS);
		expect_eq(pending(), 1);
	}
	rig_advance(&rig, SECOND);
	expect_log(&notes, 2);
	expect_eq(notes.at_ns[0], RIG_START_NS + 2 * MS);
}

/* ------------------------------------------------------------------- closing */

Test(action, closed_does_not_run_and_does_nothing_when_armed)
{
	struct work work = {.id = 1};
	open_on(TW_ACTION_KIND_ASYNC);
	arm(&work, MS);
	expect_eq(tw_action_close(work.action, 0), TW_CANCELLED);
	expect_eq(tw_action_close(work.action, 0), TW_GONE);
	expect_eq(pending(), 0);
	expect_eq(tw_action_schedule(work.action, &work, MS), -ECANCELED);
	expect_eq(pending(), 0);
	expect_eq(tw_action_state(work.action), TW_ACTION_STATE_CLOSED);
	expect_eq(tw_action_run(work.action, &work), -ECANCELED);
	rig_advance(&rig, SECOND);
	expect_eq(work.runs, 0);
}

static void close_itself(struct work *work)
{
	work->other_answer = tw_action_close(work->action, 0);
	work->error = tw_action_schedule(work->action, work, MS);
}

static void close_itself_and_wait(struct work *work)
{
	work->other_answer = tw_action_close(work->action, TW_FOREVER);
}

static void destroy_itself(struct work *work)
{
	work->other_answer = tw_action_destroy(work->action);
}

Test(action, may_close_or_destroy_itself_in_its_run)
{
	struct work closes = {.act = close_itself, .rearms = 1, .delay_ns = MS},
		    waits = {.act = close_itself_and_wait},
		    destroys = {.act = destroy_itself, .rearms = 1, .delay_ns = MS};
	open_on(TW_ACTION_KIND_ASYNC);
	work_schedule(&closes, scheduler, MS);
	work_schedule(&waits, scheduler, MS);
	work_schedule(&destroys, scheduler, MS);
	rig_advance(&rig, SECOND);
	expect_eq(closes.runs, 1);
	expect_eq(closes.other_answer, TW_SELF);
	expect_eq(closes.error, -ECANCELED);
	expect_eq(waits.runs, 1);
	expect_eq(waits.other_answer, TW_SELF);
	expect_eq(destroys.runs, 1);
	expect_eq(destroys.other_answer, TW_RUNNING);
	expect_eq(pending(), 0);
	expect_eq(tw_action_destroy(closes.action), TW_GONE);
	expect_eq(tw_action_destroy(waits.action), TW_GONE);
	expect_eq(action_stats(scheduler).actions, 0);
}

Test(action, run_by_hand_takes_the_place_of_the_run_it_is_armed_for)
{
	struct work work = {.log = &notes, .id = 1, .answer = 0};
	open_on(TW_ACTION_KIND_ASYNC);
	arm(&work, MS);
	expect_eq(tw_action_run(work.action, &work), 0);
	expect_eq(work.runs, 1);
	expect_eq(pending(), 0);
	rig_advance(&rig, SECOND);
	expect_eq(work.runs, 1);
	work.answer = 7;
	expect_eq(tw_action_run(work.action, &work), 7);
	expect_eq(tw_action_state(work.action), TW_ACTION_STATE_CLOSED);
	expect_eq(tw_action_run(work.action, &work), -ECANCELED);
	expect_eq(work.runs, 2);
}

static void run_itself(struct work *work)
{
	work->other_answer = tw_action_run(work->action, work);
}

static void run_other(struct work *work)
{
	work->other_answer = tw_action_run(work->other->action, work->other);
}

Test(action, run_by_hand_inside_a_run_is_another_one_only)
{
	struct work self = {.act = run_itself}, other = {0},
		    runner = {.act = run_other, .other = &other};
	open_on(TW_ACTION_KIND_ASYNC);
	arm(&self, MS);
	arm(&other, HOUR);
	arm(&runner, MS);
	rig_advance(&rig, SECOND);
	expect_eq(self.runs, 1);
	expect_eq(self.other_answer, -EBUSY);
	expect_eq(runner.other_answer, 0);
	expect_eq(other.runs, 1);
	expect_eq(pending(), 0);
}

/* ------------------------------------------------------------------- failure */

Test(action, that_fails_is_closed_though_it_had_rearmed_and_failed_is_told)
{
	struct work fails = {.answer = 42, .rearms = 1, .delay_ns = MS}, later = {0};
	open_on(TW_ACTION_KIND_ASYNC);
	arm(&fails, MS);
	arm(&later, 2 * MS);
	rig_advance(&rig, SECOND);
	expect_eq(failed.count, 1);
	expect_eq(failed.failure, 42);
	expect_eq(failed.closed, 0);
	cr_assert_eq(failed.action, fails.action);
	expect_eq(fails.runs, 1);
	expect_eq(tw_action_state(fails.action), TW_ACTION_STATE_CLOSED);
	expect_eq(later.runs, 1);
	expect_eq(pending(), 0);
	expect_eq(action_stats(scheduler).failures, 1);
	expect_eq(action_stats(scheduler).untold, 0);
}

Test(action, that_fails_with_nobody_to_tell_is_counted)
{
	struct work fails = {.answer = -1};
	rig_open(&rig, NULL);
	scheduler = scheduler_on(rig.service, TW_ACTION_KIND_ASYNC);
	arm(&fails, MS);
	rig_advance(&rig, SECOND);
	expect_eq(action_stats(scheduler).failures, 1);
	expect_eq(action_stats(scheduler).untold, 1);
}

Test(action, may_be_destroyed_where_its_failure_is_told)
{
	struct work fails = {.answer = 42};
	failed.destroys = true;
	open_on(TW_ACTION_KIND_ASYNC);
	work_schedule(&fails, scheduler, MS);
	rig_advance(&rig, SECOND);
	expect_eq(failed.count, 1);
}

/*
 * The second becomes due while the first runs, on a loop inside of it: it is appended, and closed
 * as the first fails.
 */
static void let_time_pass(struct work *work)
{
	struct queue_executor *queue = (struct queue_executor *)work->rig->service->executor;
	queue_executor_run_all(queue);
}

Test(action, that_comes_due_during_a_flush_is_appended_not_nested)
{
	open_queued(TW_ACTION_KIND_ASYNC);
	struct work first = {.log = &notes, .id = 1, .act = let_time_pass, .rig = &rig},
		    second = {.log = &notes, .id = 2, .act = NULL};
	arm(&first, MS);
	arm(&second, MS);
	rig_advance(&rig, 5 * MS);
	expect_eq(queue_executor_run_next(&tickets), 1);
	expect_log(&notes, 1, 2);
	expect_eq(action_stats(scheduler).flushes, 1);
}

Test(action, appended_to_a_flush_that_fails_is_closed_and_the_next_flush_runs)
{
	open_queue();
	open_scheduler((struct tw_action_scheduler_config){.flags = TW_ACTION_FLAG_CANCEL_BATCH});
	struct work first = {.log = &notes,
			     .id = 1,
			     .act = let_time_pass,
			     .rig = &rig,
			     .answer = 5},
		    second = {.log = &notes, .id = 2}, third = {.log = &notes, .id = 3};
	arm(&first, MS);
	arm(&second, MS);
	arm(&third, 10 * MS);
	rig_advance(&rig, 5 * MS);
	queue_executor_run_all(&tickets);
	expect_log(&notes, 1);
	expect_eq(failed.failure, 5);
	expect_eq(failed.closed, 1);
	expect_eq(tw_action_state(second.action), TW_ACTION_STATE_CLOSED);
	expect_eq(action_stats(scheduler).closed_by_failure, 1);
	rig_advance(&rig, 10 * MS);
	queue_executor_run_all(&tickets);
	expect_log(&notes, 1, 3);
}
