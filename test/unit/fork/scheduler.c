/* Schedulers in forked children; contexts of tasks. */
#include <errno.h>
#include <unistd.h>

#include "test/support/child.h"
#include "test/support/work_suite.h"

TestSuite(fork_scheduler, .init = open_rig, .fini = close_rig, .timeout = 30);

/* ------------------------------------------------------------------------ fork */

static void check_in_child(void *arg)
{
	struct job *job = arg;
	child_eq(tw_scheduler_submit(rig.scheduler, TW_PRIORITY_NORMAL, job_turn, job, NULL),
		 -EPERM);
	child_eq(tw_scheduler_run(rig.scheduler, 1), -EPERM);
	child_eq(tw_scheduler_should_yield(rig.scheduler), false);
	child_eq(tw_scheduler_close(rig.scheduler, 0), -EPERM);
	child_eq(tw_scheduler_destroy(rig.scheduler), 0);
}

Test(fork_scheduler, child_is_refused_and_the_parent_untouched)
{
	struct job job = JOB(&rig, 1);
	job_post(&job, TW_PRIORITY_NORMAL);
	expect_in_child(check_in_child, &job);
	expect_eq(run(), TW_SCHEDULER_RUN_IDLE);
	expect_told(&job, TW_FATE_FIRED, 0);
}

static int fork_here(struct job *job, struct tw_turn *turn)
{
	pid_t child = child_fork();
	if (child == 0) {
		child_eq(tw_scheduler_should_yield(turn->scheduler), false);
		child_eq(tw_scheduler_cancel(turn->scheduler, turn->task), -EPERM);
		child_eq(tw_scheduler_destroy(turn->scheduler), -EDEADLK);
		_exit(0);
	}
	job->answer = child;
	return TW_TURN_DONE;
}

Test(fork_scheduler, task_that_forks_is_refused_in_its_child)
{
	struct job job = JOB(&rig, 1), second = JOB(&rig, 2);
	job.act = fork_here;
	job_post(&job, TW_PRIORITY_NORMAL);
	job_post(&second, TW_PRIORITY_NORMAL);
	expect_eq(run(), TW_SCHEDULER_RUN_IDLE);
	expect_child_well(job.answer);
	EXPECT_ORDER(&rig, 1, 2);
}

/* --------------------------------------------------------------------- context */

static void *context_seen, *context_told;

static int see_context(struct tw_turn *turn, void *arg)
{
	(void)turn, (void)arg;
	context_seen = tw_context_get();
	return TW_TURN_DONE;
}

static void see_context_told(void *arg, enum tw_fate fate, int result)
{
	(void)arg, (void)fate, (void)result;
	context_told = tw_context_get();
}

Test(fork_scheduler, task_and_its_done_function_have_the_posters_context)
{
	int mine, other;
	const struct tw_scheduler_task post = {
	    .size = sizeof post, .fn = see_context, .done = see_context_told};
	tw_context_set(&mine);
	expect_eq(tw_scheduler_submit_task(rig.scheduler, &post, NULL), 0);
	tw_context_set(&other);
	expect_eq(run(), TW_SCHEDULER_RUN_IDLE);
	expect_eq(context_seen == &mine && context_told == &mine, 1);
	expect_eq(tw_context_get() == &other, 1);
	tw_context_set(NULL);
}
