/*
 * The life of a limiter beside its service and its pool, and a fork. On a clock moved by hand.
 */
#include <errno.h>
#include <unistd.h>

#include "test/support/child.h"
#include "test/support/limiter_suite.h"

TestSuite(limiter_bad_input, .fini = close_left);

/* ---------------------------------------------------------------------- life */

Test(limiter_bad_input, service_and_pool_stay_open_while_it_lives)
{
	tw_pool *pool;
	tw_limiter *other;
	struct tw_limiter_config config = limited_config(1);
	open_started(1);
	expect_eq(
	    tw_pool_create(&pool, &(struct tw_pool_config){.size = sizeof(struct tw_pool_config),
							   .workers = 1}),
	    0);
	config.executor = tw_pool_executor(pool);
	expect_eq(tw_limiter_create(&other, home.rig.service, &config), 0);
	expect_eq(tw_service_close(home.rig.service, TW_CLOSE_DROP, 0), -EBUSY);
	expect_eq(tw_pool_close(pool, TW_CLOSE_DRAIN, NULL, NULL), -EBUSY);
	expect_eq(tw_limiter_destroy(other), 0);
	expect_eq(tw_pool_close(pool, TW_CLOSE_DRAIN, NULL, NULL), 0);
	expect_eq(tw_limiter_create(&other, home.rig.service, &config), -ESHUTDOWN);
	expect_eq(tw_pool_destroy(pool), 0);
}

static pid_t forked;

static int fork_inside(void *arg, struct tw_job_run *run)
{
	forked = child_fork();
	if (forked)
		return 0;
	child_eq(tw_job_complete(run->limiter, run->job, 0, NULL), -EPERM);
	child_eq(tw_limiter_close(run->limiter, TW_CLOSE_DROP, TW_FOREVER), -EPERM);
	_exit(0);
}

Test(limiter_bad_input, a_job_that_forks_is_refused_in_its_child)
{
	struct load load = LOAD(1);
	open_started(1);
	struct tw_limiter_task task = load_task(&load);
	task.fn = fork_inside;
	load_submit_task(&load, &task);
	limited_pump(&home);
	expect_child_well(forked);
	expect_eq(load.dones, 1);
}
