/* What bounds a turn of the host, and the turn of an expired task. */
#include <errno.h>
#include <pthread.h>

#include "test/support/work_suite.h"

TestSuite(scheduler_bounds, .init = open_rig, .fini = close_rig, .timeout = 30);

static int spend_and_end(struct job *job, struct tw_turn *turn)
{
	work_rig_spend(job->rig, job->unit_ns);
	return TW_TURN_DONE;
}

static void *close_now(void *arg)
{
	return (void *)(intptr_t)tw_scheduler_close(rig.scheduler, 0);
}

static int ask_after_a_close(struct job *job, struct tw_turn *turn)
{
	pthread_t thread;
	void *closed = NULL;
	job->answer = tw_scheduler_should_yield(turn->scheduler);
	pthread_create(&thread, NULL, close_now, NULL);
	pthread_join(thread, &closed);
	job->answer |= tw_scheduler_should_yield(turn->scheduler) << 1;
	job->result = (int)(intptr_t)closed;
	return TW_TURN_AGAIN;
}

Test(scheduler_bounds, close_ends_the_turn_of_an_expired_task)
{
	struct job job = JOB(&rig, 1);
	job.act = ask_after_a_close;
	job_post_timeout(&job, -1);
	run();
	expect_eq(job.answer, 2);
	expect_eq(job.result, -ETIMEDOUT);
	expect_told(&job, TW_FATE_DROPPED, -ESHUTDOWN); /* it wanted to go on */
}

/* ------------------------------------------------------ many tasks, without an end */

enum { ENDLESS = 100000 };

/* Each of a chain submits the next one. */
static int submit_next(struct job *job, struct tw_turn *turn)
{
	work_rig_spend(job->rig, job->unit_ns);
	if (job->turns < ENDLESS)
		job_post_timeout(job, job->answer);
	return TW_TURN_DONE;
}

static void run_chain(struct job *job, int timeout_ms)
{
	job->act = submit_next;
	job->answer = timeout_ms * (int)MS;
	job_post_timeout(job, job->answer);
	expect_eq(run(), TW_SCHEDULER_RUN_MORE);
}

Test(scheduler_bounds, chain_of_immediate_tasks_ends_with_the_slice)
{
	struct job job = JOB(&rig, 1);
	job.unit_ns = MS;
	run_chain(&job, -1);
	expect_eq(job.turns, 5);
	expect_eq(run(), TW_SCHEDULER_RUN_MORE);
	expect_eq(job.turns, 10);
	expect_eq(job.timed_out, 10);
	expect_eq(tw_scheduler_close(rig.scheduler, 0), 0);
}

Test(scheduler_bounds, chain_ends_on_a_clock_that_stands_still)
{
	struct job late = JOB(&rig, 1), normal = JOB(&rig, 2);
	run_chain(&late, -1);
	expect_eq(late.turns, 1024);
	expect_eq(tw_scheduler_cancel(rig.scheduler, late.task), TW_CANCELLED);
	run_chain(&normal, 1);
	expect_eq(normal.turns, 1024);
	expect_eq(tw_scheduler_close(rig.scheduler, 0), 0);
}

enum { MANY = 100 };

static struct job many[MANY];

static void post_many_expired(uint64_t unit_ns)
{
	for (int i = 0; i < MANY; i++) {
		many[i] = JOB(&rig, i);
		many[i].act = spend_and_end, many[i].unit_ns = unit_ns;
		job_post_timeout(&many[i], -1);
	}
}

Test(scheduler_bounds, number_of_turns_beyond_the_slice_is_bounded)
{
	post_many_expired(MS);
	for (unsigned call = 1; call <= 4; call++) {
		expect_eq(run(), call < 4 ? TW_SCHEDULER_RUN_MORE : TW_SCHEDULER_RUN_IDLE);
		expect_eq(rig.ran, call < 4 ? 32 * call : MANY);
	}
	for (unsigned i = 0; i < MANY; i++)
		expect_eq(rig.order[i], i);
}

Test(scheduler_bounds, many_short_expired_tasks_stay_within_the_slice)
{
	post_many_expired(MS / 10);
	expect_eq(run(), TW_SCHEDULER_RUN_MORE);
	expect_eq(rig.ran, 50);
	expect_eq(run(), TW_SCHEDULER_RUN_IDLE);
	expect_eq(rig.ran, MANY);
}
