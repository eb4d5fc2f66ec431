/* Actions on a timer service: arming, phase, closing, failure. */
#include "test/support/actions.h"
#include "test/support/members.h"
#include "test/support/queue_executor.h"
#include "wheel/core/service.h"

TestSuite(action, .timeout = 30);

static void open_async(struct rig *rig, tw_action_scheduler **scheduler)
{
	rig_open(rig, NULL);
	*scheduler = scheduler_on(rig->service, TW_ACTION_KIND_ASYNC);
}

static void close_async(struct rig *rig, tw_action_scheduler *scheduler)
{
	expect_eq(tw_action_scheduler_destroy(scheduler), 0);
	rig_close(rig);
}

static uint64_t pending(struct rig *rig)
{
	return stats_of(rig->service).pending;
}

/* -------------------------------------------------------------------- runs */

Test(action, runs_once_after_its_delay)
{
	struct rig rig;
	tw_action_scheduler *scheduler;
	struct log log = {0};
	struct work work = {.log = &log, .id = 1};
	open_async(&rig, &scheduler);
	work_schedule(&work, scheduler, 5 * MS);
	expect_eq(tw_action_state(work.action), TW_ACTION_STATE_ARMED);
	rig_advance(&rig, 4 * MS);
	expect_eq(work.runs, 0);
	rig_advance(&rig, SECOND);
	expect_log(&log, 1);
	expect_eq(log.at_ns[0], RIG_START_NS + 5 * MS);
	expect_eq(tw_action_state(work.action), TW_ACTION_STATE_IDLE);
	expect_eq(tw_action_destroy(work.action), TW_GONE);
	close_async(&rig, scheduler);
}

Test(action, that_does_not_rearm_leaves_no_timer_and_can_be_armed_again)
{
	struct rig rig;
	tw_action_scheduler *scheduler;
	struct log log = {0};
	struct work work = {.log = &log, .id = 1};
	open_async(&rig, &scheduler);
	work_schedule(&work, scheduler, MS);
	rig_advance(&rig, MS);
	expect_eq(work.runs, 1);
	expect_eq(pending(&rig), 0);
	work.error = tw_action_schedule(work.action, &work, 3 * MS);
	expect_eq(work.error, 0);
	expect_eq(pending(&rig), 1);
	rig_advance(&rig, SECOND);
	expect_eq(work.runs, 2);
	expect_eq(log.at_ns[1], RIG_START_NS + 4 * MS);
	expect_eq(tw_action_destroy(work.action), TW_GONE);
	close_async(&rig, scheduler);
}

/* Each run takes 3 ms of 10: an interval is not made longer by that. */
Test(action, rearmed_with_the_same_delay_keeps_its_phase)
{
	struct rig rig;
	tw_action_scheduler *scheduler;
	struct log log = {0};
	struct work work = {
	    .log = &log, .id = 1, .rearms = 9, .delay_ns = 10 * MS, .slow_ns = 3 * MS, .rig = &rig};
	open_async(&rig, &scheduler);
	work_schedule(&work, scheduler, 10 * MS);
	rig_advance(&rig, SECOND);
	expect_eq(log.count, 10);
	for (int i = 0; i < 10; i++)
		expect_eq(log.at_ns[i], RIG_START_NS + (uint64_t)(i + 1) * 10 * MS);
	expect_eq(tw_action_destroy(work.action), TW_GONE);
	close_async(&rig, scheduler);
}

Test(action, that_was_held_up_leaves_out_instants_and_keeps_its_phase)
{
	struct rig rig;
	tw_action_scheduler *scheduler;
	struct log log = {0};
	struct work work = {.log = &log,
			    .id = 1,
			    .rearms = 3,
			    .delay_ns = 10 * MS,
			    .slow_ns = 25 * MS,
			    .rig = &rig};
	open_async(&rig, &scheduler);
	work_schedule(&work, scheduler, 10 * MS);
	rig_advance(&rig, SECOND);
	expect_eq(log.count, 4);
	for (int i = 0; i < 4; i++)
		expect_eq(log.at_ns[i], RIG_START_NS + 10 * MS + (uint64_t)i * 30 * MS);
	expect_eq(tw_action_destroy(work.action), TW_GONE);
	close_async(&rig, scheduler);
}

Test(action, rearmed_with_another_delay_starts_anew)
{
	struct rig rig;
	tw_action_scheduler *scheduler;
	struct log log = {0};
	struct work work = {
	    .log = &log, .id = 1, .rearms = 1, .delay_ns = 20 * MS, .slow_ns = 3 * MS, .rig = &rig};
	open_async(&rig, &scheduler);
	work_schedule(&work, scheduler, 10 * MS);
	rig_advance(&rig, SECOND);
	expect_eq(log.count, 2);
	expect_eq(log.at_ns[1], RIG_START_NS + (10 + 3 + 20) * MS);
	expect_eq(tw_action_destroy(work.action), TW_GONE);
	close_async(&rig, scheduler);
}

static void arm_twice(struct work *work)
{
	if (work->runs > 1)
		return;
	tw_action_schedule(work->action, work, 10 * MS);
	tw_action_schedule(work->action, work, 10 * MS);
}

Test(action, rearmed_twice_in_a_run_has_one_next_run_in_phase)
{
	struct rig rig;
	tw_action_scheduler *scheduler;
	struct log log = {0};
	struct work work = {.log = &log, .id = 1, .act = arm_twice, .slow_ns = 3 * MS, .rig = &rig};
	open_async(&rig, &scheduler);
	work_schedule(&work, scheduler, 10 * MS);
	rig_advance(&rig, SECOND);
	expect_eq(log.count, 2);
	expect_eq(log.at_ns[1], RIG_START_NS + 20 * MS);
	expect_eq(tw_action_destroy(work.action), TW_GONE);
	close_async(&rig, scheduler);
}

Test(action, armed_again_before_its_run_gets_the_new_state_and_delay_and_no_second_timer)
{
	struct rig rig;
	tw_action_scheduler *scheduler;
	struct log log = {0};
	struct work first = {.log = &log, .id = 1}, second = {.log = &log, .id = 2};
	open_async(&rig, &scheduler);
	work_schedule(&first, scheduler, 5 * MS);
	second.scheduler = scheduler;
	for (uint64_t delay_ns = 9; delay_ns >= 2; delay_ns--) {
		tw_action_schedule(first.action, &second, delay_ns * MS);
		expect_eq(pending(&rig), 1);
	}
	rig_advance(&rig, SECOND);
	expect_log(&log, 2);
	expect_eq(log.at_ns[0], RIG_START_NS + 2 * MS);
	expect_eq(tw_action_destroy(first.action), TW_GONE);
	close_async(&rig, scheduler);
}

/* ------------------------------------------------------------------- closing */

Test(action, closed_does_not_run_and_does_nothing_when_armed)
{
	struct rig rig;
	tw_action_scheduler *scheduler;
	struct work work = {.id = 1};
	open_async(&rig, &scheduler);
	work_schedule(&work, scheduler, MS);
	expect_eq(tw_action_close(work.action, 0), TW_CANCELLED);
	expect_eq(tw_action_close(work.action, 0), TW_GONE);
	expect_eq(pending(&rig), 0);
	expect_eq(tw_action_schedule(work.action, &work, MS), -ECANCELED);
	expect_eq(pending(&rig), 0);
	expect_eq(tw_action_state(work.action), TW_ACTION_STATE_CLOSED);
	expect_eq(tw_action_run(work.action, &work), -ECANCELED);
	rig_advance(&rig, SECOND);
	expect_eq(work.runs, 0);
	expect_eq(tw_action_destroy(work.action), TW_GONE);
	close_async(&rig, scheduler);
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
	struct rig rig;
	tw_action_scheduler *scheduler;
	struct work closes = {.act = close_itself, .rearms = 1, .delay_ns = MS},
		    waits = {.act = close_itself_and_wait},
		    destroys = {.act = destroy_itself, .rearms = 1, .delay_ns = MS};
	open_async(&rig, &scheduler);
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
	expect_eq(pending(&rig), 0);
	expect_eq(tw_action_destroy(closes.action), TW_GONE);
	expect_eq(tw_action_destroy(waits.action), TW_GONE);
	expect_eq(action_stats(scheduler).actions, 0);
	close_async(&rig, scheduler);
}

Test(action, run_by_hand_takes_the_place_of_the_run_it_is_armed_for)
{
	struct rig rig;
	tw_action_scheduler *scheduler;
	struct log log = {0};
	struct work work = {.log = &log, .id = 1, .answer = 0};
	open_async(&rig, &scheduler);
	work_schedule(&work, scheduler, MS);
	expect_eq(tw_action_run(work.action, &work), 0);
	expect_eq(work.runs, 1);
	expect_eq(pending(&rig), 0);
	rig_advance(&rig, SECOND);
	expect_eq(work.runs, 1);
	work.answer = 7;
	expect_eq(tw_action_run(work.action, &work), 7);
	expect_eq(tw_action_state(work.action), TW_ACTION_STATE_CLOSED);
	expect_eq(tw_action_run(work.action, &work), -ECANCELED);
	expect_eq(work.runs, 2);
	expect_eq(tw_action_destroy(work.action), TW_GONE);
	close_async(&rig, scheduler);
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
	struct rig rig;
	tw_action_scheduler *scheduler;
	struct work self = {.act = run_itself}, other = {0},
		    runner = {.act = run_other, .other = &other};
	open_async(&rig, &scheduler);
	work_schedule(&self, scheduler, MS);
	work_schedule(&other, scheduler, HOUR);
	work_schedule(&runner, scheduler, MS);
	rig_advance(&rig, SECOND);
	expect_eq(self.runs, 1);
	expect_eq(self.other_answer, -EBUSY);
	expect_eq(runner.other_answer, 0);
	expect_eq(other.runs, 1);
	expect_eq(pending(&rig), 0);
	tw_action_destroy(self.action);
	tw_action_destroy(other.action);
	tw_action_destroy(runner.action);
	close_async(&rig, scheduler);
}

/* ------------------------------------------------------------------- failure */

Test(action, that_fails_is_closed_though_it_had_rearmed_and_failed_is_told)
{
	struct rig rig;
	struct told told = {0};
	struct work fails = {.answer = 42, .rearms = 1, .delay_ns = MS}, later = {0};
	rig_open(&rig, NULL);
	struct tw_action_scheduler_config config = {.size = sizeof(config),
						    .service = rig.service,
						    .failed = tell_failure,
						    .failed_arg = &told};
	tw_action_scheduler *scheduler = scheduler_of(&config);
	work_schedule(&fails, scheduler, MS);
	work_schedule(&later, scheduler, 2 * MS);
	rig_advance(&rig, SECOND);
	expect_eq(told.count, 1);
	expect_eq(told.failure, 42);
	expect_eq(told.closed, 0);
	cr_assert_eq(told.action, fails.action);
	expect_eq(fails.runs, 1);
	expect_eq(tw_action_state(fails.action), TW_ACTION_STATE_CLOSED);
	expect_eq(later.runs, 1);
	expect_eq(pending(&rig), 0);
	expect_eq(action_stats(scheduler).failures, 1);
	expect_eq(action_stats(scheduler).untold, 0);
	tw_action_destroy(fails.action);
	tw_action_destroy(later.action);
	close_async(&rig, scheduler);
}

Test(action, that_fails_with_nobody_to_tell_is_counted)
{
	struct rig rig;
	tw_action_scheduler *scheduler;
	struct work fails = {.answer = -1};
	open_async(&rig, &scheduler);
	work_schedule(&fails, scheduler, MS);
	rig_advance(&rig, SECOND);
	expect_eq(action_stats(scheduler).failures, 1);
	expect_eq(action_stats(scheduler).untold, 1);
	tw_action_destroy(fails.action);
	close_async(&rig, scheduler);
}

Test(action, may_be_destroyed_where_its_failure_is_told)
{
	struct rig rig;
	struct told told = {.destroys = true};
	struct work fails = {.answer = 42};
	rig_open(&rig, NULL);
	struct tw_action_scheduler_config config = {.size = sizeof(config),
						    .service = rig.service,
						    .failed = tell_failure,
						    .failed_arg = &told};
	tw_action_scheduler *scheduler = scheduler_of(&config);
	work_schedule(&fails, scheduler, MS);
	rig_advance(&rig, SECOND);
	expect_eq(told.count, 1);
	close_async(&rig, scheduler);
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
	struct rig rig;
	struct queue_executor queue;
	queue_executor_open(&queue);
	struct tw_service_config cfg = rig_config();
	cfg.executor = &queue.base;
	rig_open(&rig, &cfg);
	tw_action_scheduler *scheduler = scheduler_on(rig.service, TW_ACTION_KIND_ASYNC);
	struct log log = {0};
	struct work first = {.log = &log, .id = 1, .act = let_time_pass, .rig = &rig},
		    second = {.log = &log, .id = 2, .act = NULL};
	work_schedule(&first, scheduler, MS);
	work_schedule(&second, scheduler, MS);
	rig_advance(&rig, 5 * MS);
	expect_eq(queue_executor_run_next(&queue), 1);
	expect_log(&log, 1, 2);
	expect_eq(action_stats(scheduler).flushes, 1);
	tw_action_destroy(first.action);
	tw_action_destroy(second.action);
	close_async(&rig, scheduler);
	queue_executor_close(&queue);
}

Test(action, appended_to_a_flush_that_fails_is_closed_and_the_next_flush_runs)
{
	struct rig rig;
	struct queue_executor queue;
	struct told told = {0};
	queue_executor_open(&queue);
	struct tw_service_config cfg = rig_config();
	cfg.executor = &queue.base;
	rig_open(&rig, &cfg);
	struct tw_action_scheduler_config config = {.size = sizeof(config),
						    .service = rig.service,
						    .flags = TW_ACTION_FLAG_CANCEL_BATCH,
						    .failed = tell_failure,
						    .failed_arg = &told};
	tw_action_scheduler *scheduler = scheduler_of(&config);
	struct log log = {0};
	struct work first = {.log = &log, .id = 1, .act = let_time_pass, .rig = &rig, .answer = 5},
		    second = {.log = &log, .id = 2}, third = {.log = &log, .id = 3};
	work_schedule(&first, scheduler, MS);
	work_schedule(&second, scheduler, MS);
	work_schedule(&third, scheduler, 10 * MS);
	rig_advance(&rig, 5 * MS);
	queue_executor_run_all(&queue);
	expect_log(&log, 1);
	expect_eq(told.failure, 5);
	expect_eq(told.closed, 1);
	expect_eq(tw_action_state(second.action), TW_ACTION_STATE_CLOSED);
	expect_eq(action_stats(scheduler).closed_by_failure, 1);
	rig_advance(&rig, 10 * MS);
	queue_executor_run_all(&queue);
	expect_log(&log, 1, 3);
	tw_action_destroy(first.action);
	tw_action_destroy(second.action);
	tw_action_destroy(third.action);
	close_async(&rig, scheduler);
	queue_executor_close(&queue);
}
