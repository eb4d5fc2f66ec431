/* Tasks that go on in another turn, and urgent tasks that are submitted inside a turn. */
#include "test/support/work_suite.h"

TestSuite(scheduler_continuations, .init = open_rig, .fini = close_rig, .timeout = 30);

/* --------------------------------------------------------------- another turn */

static int again_until_three(struct job *job, struct tw_turn *turn)
{
	job->answer += turn->task.id == job->task.id;
	return job->turns < 3 ? TW_TURN_AGAIN : TW_TURN_DONE;
}

Test(scheduler_continuations, continuation_keeps_its_handle_and_its_place)
{
	struct job first = JOB(&rig, 1), second = JOB(&rig, 2);
	first.act = again_until_three;
	job_post(&first, TW_PRIORITY_NORMAL);
	job_post(&second, TW_PRIORITY_NORMAL);
	expect_eq(run(), TW_SCHEDULER_RUN_MORE);
	expect_eq(run(), TW_SCHEDULER_RUN_MORE);
	expect_eq(run(), TW_SCHEDULER_RUN_IDLE);
	EXPECT_ORDER(&rig, 1, 1, 1, 2);
	expect_eq(first.answer, 3);
	expect_told(&first, TW_FATE_FIRED, 0);
	expect_eq(work_rig_stats(&rig).continued, 2);
}

static int other_function(struct tw_turn *turn, void *arg)
{
	((struct job *)arg)->answer++;
	return TW_TURN_DONE;
}

static int go_on_elsewhere(struct job *job, struct tw_turn *turn)
{
	turn->next = other_function;
	return TW_TURN_AGAIN;
}

Test(scheduler_continuations, continuation_may_be_another_function)
{
	struct job job = JOB(&rig, 1);
	job.act = go_on_elsewhere;
	job_post(&job, TW_PRIORITY_NORMAL);
	expect_eq(run(), TW_SCHEDULER_RUN_MORE);
	expect_eq(run(), TW_SCHEDULER_RUN_IDLE);
	expect_eq(job.turns, 1);
	expect_eq(job.answer, 1);
	expect_told(&job, TW_FATE_FIRED, 0);
}

/* --------------------------------------------------------------- urgent tasks */

static int post_other(struct job *job, struct tw_turn *turn)
{
	if (job->turns == 1) {
		job_post(job->other, TW_PRIORITY_IMMEDIATE);
		job->answer = tw_scheduler_should_yield(turn->scheduler);
	}
	return job->turns == 1 && job->result == TW_TURN_AGAIN ? TW_TURN_AGAIN : TW_TURN_DONE;
}

static int look_at_cleared(struct job *job, struct tw_turn *turn)
{
	job->answer = (int)work_rig_stats(job->rig).cleared;
	return TW_TURN_DONE;
}

Test(scheduler_continuations, task_that_ends_behind_the_head_leaves_later)
{
	struct job first = JOB(&rig, 1), urgent = JOB(&rig, 3);
	first.act = post_other, first.other = &urgent;
	urgent.act = look_at_cleared;
	job_post(&first, TW_PRIORITY_NORMAL);
	expect_eq(run(), TW_SCHEDULER_RUN_IDLE);
	expect_eq(urgent.answer, 1);
	expect_eq(work_rig_stats(&rig).cleared, 0);
	expect_eq(tw_scheduler_cancel(rig.scheduler, first.task), TW_GONE);
}
