/* Schedulers with a manual host, on a manual clock: order, slices, delays, continuations. */
#include "tickwheel/scheduler.h"

#include <errno.h>

#include "test/support/work_rig.h"

static struct work_rig rig;

static void open_rig(void)
{
	work_rig_open(&rig, NULL);
}

static void close_rig(void)
{
	work_rig_close(&rig);
}

TestSuite(scheduler, .init = open_rig, .fini = close_rig, .timeout = 30);

static int run(void)
{
	return tw_scheduler_run(rig.scheduler, TW_NO_LIMIT);
}

/* ------------------------------------------------------------ the worked checks */

Test(scheduler, immediate_task_of_ten_units_does_all_in_one_call)
{
	struct job job = JOB(&rig, 1);
	job.units = 10, job.unit_ns = 2 * MS;
	job_post(&job, TW_PRIORITY_IMMEDIATE);
	expect_eq(run(), TW_RUN_IDLE);
	expect_eq(job.turns, 1);
	expect_eq(job.timed_out, 1);
	expect_eq(job.units, 0);
	expect_told(&job, TW_FATE_FIRED, 0);
}

Test(scheduler, user_blocking_task_of_ten_units_takes_four_calls)
{
	struct job job = JOB(&rig, 1);
	const unsigned left[] = {7, 4, 1, 0};
	job.units = 10, job.unit_ns = 2 * MS;
	job_post(&job, TW_PRIORITY_USER_BLOCKING);
	for (unsigned call = 0; call < 4; call++) {
		expect_eq(run(), call < 3 ? TW_RUN_MORE : TW_RUN_IDLE);
		expect_eq(job.turns, call + 1);
		expect_eq(job.left[call], left[call]);
	}
	expect_eq(job.timed_out, 0);
	expect_told(&job, TW_FATE_FIRED, 0);
}

/* ------------------------------------------------------------------------ order */

Test(scheduler, tasks_run_by_priority_and_equals_in_the_order_of_posting)
{
	static const enum tw_priority priorities[] = {
	    TW_PRIORITY_IDLE,      TW_PRIORITY_LOW,           TW_PRIORITY_NORMAL, TW_PRIORITY_NORMAL,
	    TW_PRIORITY_IMMEDIATE, TW_PRIORITY_USER_BLOCKING, TW_PRIORITY_LOW,    TW_PRIORITY_IMMEDIATE};
	struct job jobs[8];
	for (int i = 0; i < 8; i++) {
		jobs[i] = JOB(&rig, i);
		job_post(&jobs[i], priorities[i]);
	}
	expect_eq(run(), TW_RUN_IDLE);
	EXPECT_ORDER(&rig, 4, 7, 5, 2, 3, 1, 6, 0);
}

Test(scheduler, low_task_that_has_waited_goes_before_a_fresh_normal_one)
{
	struct job low = JOB(&rig, 1), normal = JOB(&rig, 2), later = JOB(&rig, 3);
	job_post(&low, TW_PRIORITY_LOW);
	work_rig_spend(&rig, 4999 * MS);
	job_post(&later, TW_PRIORITY_NORMAL); /* expires 1 ms before */
	work_rig_spend(&rig, 2 * MS);
	job_post(&normal, TW_PRIORITY_NORMAL);
	expect_eq(run(), TW_RUN_IDLE);
	EXPECT_ORDER(&rig, 3, 1, 2);
}
