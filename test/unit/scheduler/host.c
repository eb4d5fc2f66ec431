/* Schedulers whose host is an executor: when it gets work, and timers of delayed tasks. */
#include <errno.h>

#include "test/support/eager_executor.h"
#include "test/support/host_suite.h"

TestSuite(scheduler_host, .fini = close_left, .timeout = 60);

Test(scheduler_host, far_task_waits_for_its_instant_however_old_the_service_is)
{
	struct job job = JOB(&rig, 1);
	open_on(&queue.base);
	rig_advance(&rig.rig, (UINT64_C(1) << 60) + SECOND);
	job_post_delayed(&job, TW_PRIORITY_NORMAL, SECOND);
	rig_advance(&rig.rig, SECOND - MS);
	expect_eq(queue_executor_run_all(&queue), 0);
	rig_advance(&rig.rig, 2 * MS);
	expect_eq(queue_executor_run_all(&queue), 1);
	EXPECT_ORDER(&rig, 1);
}

static char *lowest;

static int many_slices(struct job *job, struct tw_turn *turn)
{
	char here;
	lowest = !lowest || &here < lowest ? &here : lowest;
	job->answer = job->answer > (int)(&here - lowest) ? job->answer : (int)(&here - lowest);
	work_rig_spend(job->rig, 6 * MS);
	return job->turns < 2000 ? TW_TURN_AGAIN : TW_TURN_DONE;
}

Test(scheduler_host, executor_that_runs_in_submit_runs_nothing_inside_post_and_piles_up_no_stack)
{
	struct job job = JOB(&rig, 1);
	open_on(&eager_executor);
	job = JOB(&rig, 1), job.act = many_slices;
	job_post(&job, TW_PRIORITY_NORMAL); /* low: its expiration comes meanwhile */
	expect_eq(job.turns, 0);
	for (int turns = 0; !job.told && turns < 5000; turns++)
		rig_advance(&rig.rig, 0);
	expect_told(&job, TW_FATE_FIRED, 0);
	expect_eq(job.turns, 2000);
	expect_lt(job.answer, 1000);
	expect_gt(work_rig_stats(&rig).slices, 500);
}

Test(scheduler_host, many_delayed_tasks_of_one_instant_run_in_one_slice)
{
	enum { MANY = 1000 };
	static struct job jobs[MANY];
	open_on(&queue.base);
	for (int i = 0; i < MANY; i++) {
		jobs[i] = JOB(&rig, i);
		job_post_delayed(&jobs[i], TW_PRIORITY_NORMAL, 3 * MS);
	}
	rig_advance(&rig.rig, 3 * MS);
	expect_eq(work_rig_stats(&rig).ready, MANY);
	expect_eq(queue_executor_run_all(&queue), 1);
	for (int i = 0; i < MANY; i++)
		expect_eq(rig.order[i], i);
	expect_eq(work_rig_stats(&rig).completed, MANY);
	expect_eq(work_rig_stats(&rig).slices, 1);
}
