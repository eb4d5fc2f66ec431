/*
 * Bad configs and bad submits are refused. A scheduler that gets no memory, or no timer from its
 * service, loses no task.
 */
#include <errno.h>

#include "test/support/faults.h"
#include "test/support/work_suite.h"

TestSuite(scheduler_refusals, .init = open_rig, .fini = close_rig, .timeout = 30);

/* -------------------------------------------------------------------- bad arguments */

Test(scheduler_refusals, farthest_delay_is_accepted)
{
	static struct job job; /* told of its end when the rig is closed */
	job = JOB(&rig, 1);
	job_post_delayed(&job, TW_PRIORITY_IDLE, TW_MAX_DELAY_NS);
	expect_eq(work_rig_stats(&rig).delayed, 1);
}

/* ------------------------------------------------------- no memory, or no timer */

static int post_one(uint64_t delay_ns, struct job *job)
{
	const struct tw_scheduler_task post = {.size = sizeof post,
					       .fn = job_turn,
					       .arg = job,
					       .done = job_done,
					       .delay_ns = delay_ns};
	return tw_scheduler_submit_task(rig.scheduler, &post, &job->task);
}

Test(scheduler_refusals, post_without_memory_changes_nothing_and_can_be_repeated)
{
	enum { MANY = 200 };
	static struct job jobs[MANY];
	unsigned refused = 0;
	for (int i = 0; i < MANY; i++) {
		jobs[i] = JOB(&rig, i);
		for (long nth = 0;; nth++) {
			faults_arm(nth, false);
			int r = post_one(i % 2 ? MS : 0, &jobs[i]);
			bool hit = faults_disarm();
			if (r == 0)
				break;
			expect_eq(hit, 1);
			expect_eq(r, -ENOMEM);
			refused++;
		}
	}
	expect_ge(refused, 4);
	struct tw_scheduler_stats stats = work_rig_stats(&rig);
	expect_eq(stats.submitted, (int)MANY);
	expect_eq(stats.rejected, refused);
	rig_advance(&rig.rig, 5 * MS);
	while (run() == TW_SCHEDULER_RUN_MORE)
		;
	expect_eq(rig.ran, (int)MANY);
}
