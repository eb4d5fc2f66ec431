/*
 * What the limiter refuses, and its life: bad input, want of memory, fork. On a clock moved by
 * hand.
 */
#include <errno.h>
#include <unistd.h>

#include "test/support/child.h"
#include "test/support/faults.h"
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

Test(limiter_bad_input, without_memory_nothing_is_accepted_and_nothing_left)
{
	struct tw_limiter_config config = limited_config(1);
	struct load load = LOAD(1);
	config.flags = TW_LIMITER_COLLECT;
	config.rate_starts = 3;
	config.rate_interval_ns = MS;
	limited_open(&home, &config);
	struct tw_limiter_task task = load_task(&load);
	task.timeout_ns = SECOND;
	for (long nth = 0;; nth++) {
		tw_limiter *other = NULL;
		long before = faults_outstanding();
		faults_arm(nth, false);
		int r = tw_limiter_create(&other, home.rig.service, &config);
		bool failed = faults_disarm();
		if (!failed) {
			expect_eq(r, 0);
			expect_eq(tw_limiter_destroy(other), 0);
			break;
		}
		expect_eq(r, -ENOMEM);
		expect_eq(faults_outstanding(), before);
	}
	unsigned refusals = 0;
	for (long nth = 0;; nth++) {
		faults_arm(nth, false);
		int r = tw_limiter_submit_task(home.limiter, &task, NULL);
		bool failed = faults_disarm();
		if (r == 0)
			break;
		expect_eq(failed, true);
		expect_eq(r, -ENOMEM);
		expect_eq(limited_stats(&home).added, 0);
		refusals++;
	}
	expect_ge(refusals, 3); /* options, nodes, results */
	tw_limiter_set_paused(home.limiter, false);
	limited_pump(&home);
	expect_eq(load.dones, 1);
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
