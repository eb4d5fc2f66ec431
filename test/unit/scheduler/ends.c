/* How tasks end: failing, cancelling, closing; max_tasks. */
#include <errno.h>

#include "test/support/work_suite.h"

TestSuite(scheduler_ends, .init = open_rig, .fini = close_rig, .timeout = 30);

/* --------------------------------------------------------------------- failing */

static int fail(struct job *job, struct tw_turn *turn)
{
	job->answer = tw_priority_current();
	return -EBADMSG;
}

Test(scheduler_ends, failing_task_is_told_and_not_retried_and_the_others_go_on)
{
	struct job bad = JOB(&rig, 1), good = JOB(&rig, 2);
	bad.act = fail;
	job_post(&bad, TW_PRIORITY_USER_BLOCKING);
	job_post(&good, TW_PRIORITY_NORMAL);
	expect_eq(run(), TW_SCHEDULER_RUN_IDLE);
	EXPECT_ORDER(&rig, 1, 2);
	expect_told(&bad, TW_FATE_FIRED, -EBADMSG);
	expect_told(&good, TW_FATE_FIRED, 0);
	struct tw_scheduler_stats stats = work_rig_stats(&rig);
	expect_eq(stats.failed, 1);
	expect_eq(stats.completed, 1);
	expect_eq(stats.last_failure, -EBADMSG);
	expect_eq(stats.last_failure_task, bad.task.id);
}

Test(scheduler_ends, priority_and_state_are_restored_after_a_failing_task)
{
	struct job bad = JOB(&rig, 1), next = JOB(&rig, 2);
	bad.act = fail;
	expect_eq(tw_priority_current(), TW_PRIORITY_NORMAL);
	job_post(&bad, TW_PRIORITY_USER_BLOCKING);
	expect_eq(run(), TW_SCHEDULER_RUN_IDLE);
	expect_eq(bad.answer, TW_PRIORITY_USER_BLOCKING);
	expect_eq(tw_priority_current(), TW_PRIORITY_NORMAL);
	expect_eq(tw_scheduler_should_yield(rig.scheduler), 0);
	job_post(&next, TW_PRIORITY_IDLE);
	expect_eq(rig.wanted, 2); /* the host is asked anew: nothing runs */
	expect_eq(run(), TW_SCHEDULER_RUN_IDLE);
}

/* ------------------------------------------------------------------ cancelling */

static int go_on_without_next(struct job *job, struct tw_turn *turn)
{
	turn->next = NULL;
	if (job->other)
		tw_scheduler_cancel(turn->scheduler, turn->task);
	return TW_TURN_AGAIN;
}

Test(scheduler_ends, task_that_goes_on_without_a_continuation_is_done)
{
	for (int cancelled = 0; cancelled < 2; cancelled++) {
		struct job job = JOB(&rig, 1), next = JOB(&rig, 2);
		job.act = go_on_without_next;
		job.other = cancelled ? &next : NULL;
		job_post(&job, TW_PRIORITY_NORMAL);
		job_post(&next, TW_PRIORITY_NORMAL);
		expect_eq(run(), TW_SCHEDULER_RUN_IDLE);
		expect_told(&job, TW_FATE_FIRED, 0);
		expect_told(&next, TW_FATE_FIRED, 0);
		expect_eq(tw_scheduler_cancel(rig.scheduler, job.task), TW_GONE);
		struct tw_scheduler_stats stats = work_rig_stats(&rig);
		expect_eq(stats.completed, 2u * (unsigned)(cancelled + 1));
		expect_eq(stats.continued, 0);
		expect_eq(stats.cleared, 0);
		expect_eq(stats.ready, 0);
	}
}

Test(scheduler_ends, cancel_of_waiting_finished_and_unknown_tasks)
{
	struct job one = JOB(&rig, 1), two = JOB(&rig, 2);
	job_post(&one, TW_PRIORITY_NORMAL);
	job_post(&two, TW_PRIORITY_NORMAL);
	expect_eq(tw_scheduler_cancel(rig.scheduler, one.task), TW_CANCELLED);
	expect_told(&one, TW_FATE_CANCELLED, -ECANCELED);
	expect_eq(tw_scheduler_cancel(rig.scheduler, one.task), TW_GONE);
	expect_eq(run(), TW_SCHEDULER_RUN_IDLE);
	EXPECT_ORDER(&rig, 2);
	expect_eq(tw_scheduler_cancel(rig.scheduler, two.task), TW_GONE);
	expect_eq(tw_scheduler_cancel(rig.scheduler, (tw_scheduler_task_id){0}), TW_GONE);
	expect_eq(tw_scheduler_cancel(rig.scheduler, (tw_scheduler_task_id){UINT64_MAX}), TW_GONE);
	expect_eq(tw_scheduler_cancel(NULL, two.task), -EINVAL);
	expect_told(&one, TW_FATE_CANCELLED, -ECANCELED);
}

static int cancel_itself(struct job *job, struct tw_turn *turn)
{
	job->answer = tw_scheduler_cancel(turn->scheduler, turn->task);
	return job->result;
}

Test(scheduler_ends, cancel_of_a_running_task_ends_it_if_it_wants_to_go_on)
{
	struct job on = JOB(&rig, 1), done = JOB(&rig, 2);
	on.act = done.act = cancel_itself;
	on.result = TW_TURN_AGAIN;
	job_post(&on, TW_PRIORITY_NORMAL);
	job_post(&done, TW_PRIORITY_NORMAL);
	expect_eq(run(), TW_SCHEDULER_RUN_IDLE);
	EXPECT_ORDER(&rig, 1, 2);
	expect_eq(on.answer, TW_RUNNING);
	expect_told(&on, TW_FATE_CANCELLED, -ECANCELED);
	expect_told(&done, TW_FATE_FIRED, 0);
	expect_eq(work_rig_stats(&rig).cancelled, 1);
}

Test(scheduler_ends, cleared_tasks_fall_out_at_the_head_and_are_swept_when_they_outnumber_the_live)
{
	enum { MANY = 10 };
	struct job jobs[MANY];
	for (int i = 0; i < MANY; i++) {
		jobs[i] = JOB(&rig, i);
		job_post_delayed(&jobs[i], TW_PRIORITY_NORMAL, i % 2 ? 0 : (uint64_t)(i + 1) * MS);
	}
	for (int i = 0; i < 5; i++)
		expect_eq(tw_scheduler_cancel(rig.scheduler, jobs[9 - i].task), TW_CANCELLED);
	struct tw_scheduler_stats stats = work_rig_stats(&rig);
	expect_eq(stats.cleared, 5);
	expect_eq(stats.sweeps, 0);
	expect_eq(stats.ready, 2);
	expect_eq(stats.delayed, 3);
	expect_eq(tw_scheduler_cancel(rig.scheduler, jobs[0].task), TW_CANCELLED);
	stats = work_rig_stats(&rig);
	expect_eq(stats.cleared, 0);
	expect_eq(stats.sweeps, 1);
	expect_eq(tw_scheduler_cancel(rig.scheduler, jobs[1].task),
		  TW_CANCELLED); /* the head: it stays until it is met */
	expect_eq(work_rig_stats(&rig).cleared, 1);
	rig_advance(&rig.rig, 20 * MS);
	expect_eq(run(), TW_SCHEDULER_RUN_IDLE);
	EXPECT_ORDER(&rig, 3, 2, 4);
	expect_eq(work_rig_stats(&rig).cleared, 0);
}

Test(scheduler_ends, cleared_tasks_are_swept_too_when_the_live_come_to_their_ends)
{
	enum { MANY = 10 };
	struct job jobs[2 * MANY], late = JOB(&rig, 99);
	job_post_delayed(&late, TW_PRIORITY_NORMAL, HOUR);
	for (int i = 0; i < 2 * MANY; i++) {
		jobs[i] = JOB(&rig, i);
		job_post_delayed(&jobs[i], TW_PRIORITY_NORMAL, i < MANY ? 0 : 2 * HOUR);
	}
	for (int i = MANY; i < 2 * MANY; i++)
		expect_eq(tw_scheduler_cancel(rig.scheduler, jobs[i].task), TW_CANCELLED);
	expect_eq(work_rig_stats(&rig).cleared, MANY);
	expect_eq(run(), TW_SCHEDULER_RUN_IDLE);
	struct tw_scheduler_stats stats = work_rig_stats(&rig);
	expect_eq(stats.completed, MANY);
	expect_eq(stats.cleared, 0);
	expect_eq(stats.sweeps, 1);
	expect_eq(stats.delayed, 1);
	expect_eq(tw_scheduler_cancel(rig.scheduler, late.task), TW_CANCELLED);
}

/* --------------------------------------------------------------------- closing */

static int close_from_inside(struct job *job, struct tw_turn *turn)
{
	job->answer = tw_scheduler_close(turn->scheduler, 0) == -EDEADLK &&
		      tw_scheduler_destroy(turn->scheduler) == -EDEADLK &&
		      tw_scheduler_run(turn->scheduler, 1) == -EBUSY;
	return TW_TURN_DONE;
}

Test(scheduler_ends, turn_may_neither_close_nor_run)
{
	struct job job = JOB(&rig, 1);
	job.act = close_from_inside;
	job_post(&job, TW_PRIORITY_NORMAL);
	expect_eq(run(), TW_SCHEDULER_RUN_IDLE);
	expect_eq(job.answer, 1);
}

static int close_answer;

static void close_in_done(void *arg, enum tw_fate fate, int result)
{
	close_answer = tw_scheduler_destroy(((struct job *)arg)->rig->scheduler);
}

Test(scheduler_ends, done_function_may_not_close)
{
	struct job job = JOB(&rig, 1);
	const struct tw_scheduler_task post = {
	    .size = sizeof post, .fn = job_turn, .arg = &job, .done = close_in_done};
	expect_eq(tw_scheduler_submit_task(rig.scheduler, &post, &job.task), 0);
	expect_eq(tw_scheduler_cancel(rig.scheduler, job.task), TW_CANCELLED);
	expect_eq(close_answer, -EDEADLK);
}

Test(scheduler_ends, close_tells_each_remaining_task_and_refuses_new_ones)
{
	struct job ready = JOB(&rig, 1), delayed = JOB(&rig, 2), cancelled = JOB(&rig, 3),
		   late = JOB(&rig, 4);
	job_post(&ready, TW_PRIORITY_NORMAL);
	job_post_delayed(&delayed, TW_PRIORITY_NORMAL, MS);
	job_post(&cancelled, TW_PRIORITY_NORMAL);
	tw_scheduler_cancel(rig.scheduler, cancelled.task);
	expect_eq(tw_scheduler_close(rig.scheduler, 0), 0);
	expect_told(&ready, TW_FATE_DROPPED, -ESHUTDOWN);
	expect_told(&delayed, TW_FATE_DROPPED, -ESHUTDOWN);
	expect_told(&cancelled, TW_FATE_CANCELLED, -ECANCELED);
	expect_eq(tw_scheduler_submit(rig.scheduler, TW_PRIORITY_NORMAL, job_turn, &late, NULL),
		  -ESHUTDOWN);
	expect_eq(run(), -ESHUTDOWN);
	expect_eq(tw_scheduler_cancel(rig.scheduler, ready.task), TW_GONE);
	expect_eq(tw_scheduler_close(rig.scheduler, 0), 0);
	struct tw_scheduler_stats stats = work_rig_stats(&rig);
	expect_eq(stats.dropped, 2);
	expect_eq(stats.rejected, 1);
	expect_eq(stats.ready + stats.delayed + stats.cleared, 0);
	rig_advance(&rig.rig, 10 * MS);
	expect_eq(rig.ran, 0);
}

Test(scheduler_ends, service_cannot_be_closed_under_a_scheduler)
{
	expect_eq(tw_service_close(rig.rig.service, TW_CLOSE_DROP, 0), -EBUSY);
	expect_eq(tw_scheduler_close(rig.scheduler, 0), 0);
	expect_eq(tw_service_destroy(rig.rig.service), -EBUSY);
}

/* ------------------------------------------------------------------- max_tasks */

Test(scheduler_ends, max_tasks_bounds_what_has_not_ended)
{
	tw_scheduler *small;
	struct tw_scheduler_config config = work_rig_config(&rig);
	tw_scheduler_task_id task;
	config.max_tasks = 2;
	expect_eq(tw_scheduler_create(&small, rig.rig.service, &config), 0);
	struct job job = JOB(&rig, 1);
	job.act = fail;
	expect_eq(tw_scheduler_submit(small, TW_PRIORITY_NORMAL, job_turn, &job, NULL), 0);
	expect_eq(tw_scheduler_submit(small, TW_PRIORITY_NORMAL, job_turn, &job, NULL), 0);
	expect_eq(tw_scheduler_submit(small, TW_PRIORITY_NORMAL, job_turn, &job, &task), -EAGAIN);
	expect_eq(tw_scheduler_run(small, 1), TW_SCHEDULER_RUN_MORE);
	expect_eq(tw_scheduler_submit(small, TW_PRIORITY_NORMAL, job_turn, &job, &task), 0);
	expect_eq(tw_scheduler_destroy(small), 0);
}

Test(scheduler_ends, cancelled_tasks_do_not_count_against_max_tasks)
{
	tw_scheduler *small;
	struct tw_scheduler_config config = work_rig_config(&rig);
	tw_scheduler_task_id tasks[4];
	config.max_tasks = 4;
	expect_eq(tw_scheduler_create(&small, rig.rig.service, &config), 0);
	struct job job = JOB(&rig, 1);
	for (int i = 0; i < 4; i++)
		expect_eq(tw_scheduler_submit(small, TW_PRIORITY_NORMAL, job_turn, &job, &tasks[i]),
			  0);
	for (int round = 0; round < 10; round++) {
		expect_eq(tw_scheduler_submit(small, TW_PRIORITY_NORMAL, job_turn, &job, NULL),
			  -EAGAIN);
		for (int i = 2; i < 4; i++)
			expect_eq(tw_scheduler_cancel(small, tasks[i]), TW_CANCELLED);
		for (int i = 2; i < 4; i++)
			expect_eq(tw_scheduler_submit(small, TW_PRIORITY_NORMAL, job_turn, &job,
						      &tasks[i]),
				  0);
	}
	expect_eq(tw_scheduler_destroy(small), 0);
}
