/*
 * What the limiter refuses, and its life: bad input, want of memory, fork. On a clock moved by
 * hand.
 */
#include <errno.h>
#include <unistd.h>

#include "test/support/child.h"
#include "test/support/faults.h"
#include "test/support/limiter_suite.h"

/* ----------------------------------------------------------------- bad input */

static void expect_config_refused(void (*spoil)(struct tw_limiter_config *config), int error)
{
	struct tw_limiter_config config = limited_config(1);
	tw_limiter *other = NULL;
	spoil(&config);
	expect_eq(tw_limiter_create(&other, home.rig.service, &config), error);
	cr_assert_null(other);
}

#define SPOIL(name, ...)                                   \
	static void name(struct tw_limiter_config *config) \
	{                                                  \
		__VA_ARGS__;                               \
	}
SPOIL(no_limit, config->max_concurrency = 0)
SPOIL(huge_limit, config->max_concurrency = (1u << 30) + 1)
SPOIL(odd_flags, config->flags = 4)
SPOIL(huge_pending, config->max_pending = (1u << 28) + 1)
SPOIL(rate_without_interval, config->rate_starts = 1)
SPOIL(interval_without_rate, config->rate_interval_ns = 1)
SPOIL(huge_rate, config->rate_starts = (1u << 20) + 1; config->rate_interval_ns = 1)
SPOIL(no_size, config->size = 0)
SPOIL(small_size, config->size = sizeof(size_t))

Test(limiter_bad_input, bad_configs_are_refused)
{
	struct tw_limiter_config config = limited_config(1);
	struct {
		struct tw_limiter_config known;
		uint64_t beyond;
	} newer = {.known = limited_config(1), .beyond = 1};
	tw_limiter *other = NULL;
	open_started(1);
	expect_config_refused(no_limit, -EINVAL);
	expect_config_refused(huge_limit, -EINVAL);
	expect_config_refused(odd_flags, -EINVAL);
	expect_config_refused(huge_pending, -EINVAL);
	expect_config_refused(rate_without_interval, -EINVAL);
	expect_config_refused(interval_without_rate, -EINVAL);
	expect_config_refused(huge_rate, -EINVAL);
	expect_config_refused(no_size, -EINVAL);
	expect_config_refused(small_size, -EINVAL);
	expect_eq(tw_limiter_create(NULL, home.rig.service, &config), -EINVAL);
	expect_eq(tw_limiter_create(&other, NULL, &config), -EINVAL);
	expect_eq(tw_limiter_create(&other, home.rig.service, NULL), -EINVAL);
	newer.known.size = sizeof(newer);
	expect_eq(tw_limiter_create(&other, home.rig.service, &newer.known), -E2BIG);
	newer.beyond = 0;
	expect_eq(tw_limiter_create(&other, home.rig.service, &newer.known), 0);
	expect_eq(tw_limiter_destroy(other), 0);
	close_all();
}

static void expect_task_refused(struct tw_limiter_task task, int error)
{
	tw_job job = {.id = 7};
	expect_eq(tw_limiter_submit_task(home.limiter, &task, &job), error);
	expect_eq(job.id, 7);
	expect_eq(limited_stats(&home).added, 0);
}

Test(limiter_bad_input, bad_tasks_are_refused)
{
	struct load load = LOAD(1);
	open_started(1);
	const struct tw_limiter_task good = load_task(&load);
	const uint64_t far = TW_MAX_DELAY_NS + 1;
	struct tw_limiter_task task;
#define WITH(...) (task = good, task.__VA_ARGS__, task)
	expect_task_refused(WITH(fn = NULL), -EINVAL);
	expect_task_refused(WITH(flags = 8), -EINVAL);
	expect_task_refused(WITH(priority = 32768), -EINVAL);
	expect_task_refused(WITH(priority = -32769), -EINVAL);
	expect_task_refused(WITH(size = 8), -EINVAL);
	expect_task_refused(WITH(queue_timeout_ns = far), -ERANGE);
	expect_task_refused(WITH(attempt_timeout_ns = far), -ERANGE);
	expect_task_refused(WITH(timeout_ns = far), -ERANGE);
	expect_task_refused(WITH(retry.count = (1u << 30) + 1), -EINVAL);
	expect_task_refused(WITH(retry.count = (uint32_t)-1), -EINVAL); /* a negative one */
	expect_task_refused(WITH(retry.factor_x100 = 99), -EINVAL);
	expect_task_refused(WITH(retry.factor_x100 = 100001), -EINVAL);
	expect_task_refused(WITH(retry.delay_ns = far), -ERANGE);
	expect_task_refused(WITH(retry.delay_ns = (uint64_t)-1), -ERANGE);
	expect_task_refused(WITH(retry.cap_ns = far), -ERANGE);
	expect_task_refused(WITH(retry.deadline_ns = far), -ERANGE);
	expect_eq(tw_limiter_submit_task(home.limiter, NULL, NULL), -EINVAL);
	expect_eq(tw_limiter_submit_task(NULL, &good, NULL), -EINVAL);
	expect_eq(tw_limiter_submit(home.limiter, NULL, NULL, NULL), -EINVAL);
	expect_eq(load.starts + load.dones + load.releases, 0);
	close_all();
}

Test(limiter_bad_input, null_is_refused_everywhere)
{
	struct tw_limiter_stats stats = {.size = sizeof(stats)};
	tw_job job = {.id = 1};
	expect_eq(tw_limiter_resume(NULL), -EINVAL);
	expect_eq(tw_limiter_pause(NULL), -EINVAL);
	expect_eq(tw_limiter_resume(NULL), -EINVAL);
	expect_eq(tw_limiter_close(NULL, TW_CLOSE_DROP, 0), -EINVAL);
	expect_eq(tw_limiter_wait_idle(NULL, 0), -EINVAL);
	expect_eq(tw_limiter_set_max_concurrency(NULL, 1), -EINVAL);
	expect_eq(tw_limiter_stats(NULL, &stats), -EINVAL);
	expect_eq(tw_job_complete(NULL, job, 0, NULL), -EINVAL);
	expect_eq(tw_job_cancel(NULL, job), -EINVAL);
	expect_eq(tw_job_is_cancelled(NULL, job), false);
	expect_eq(tw_job_wait(NULL, job, 0, NULL), -EINVAL);
	expect_eq(tw_job_state(NULL, job), -EINVAL);
	expect_eq(tw_job_forget(NULL, job), -EINVAL);
	expect_eq(tw_limiter_destroy(NULL), 0);
	open_started(1);
	expect_eq(tw_limiter_on_idle(home.limiter, NULL, NULL), -EINVAL);
	expect_eq(tw_limiter_on_idle(NULL, NULL, NULL), -EINVAL);
	expect_eq(tw_limiter_stats(home.limiter, NULL), -EINVAL);
	stats.size = 8;
	expect_eq(tw_limiter_stats(home.limiter, &stats), -EINVAL);
	close_all();
}

/* ---------------------------------------------------------------------- life */

Test(limiter_bad_input, destroy_is_refused_while_jobs_live)
{
	struct load loads[2] = {LOAD(1, .held = true), LOAD(2, .held = true)};
	open_started(1);
	load_submit(&loads[0]);
	expect_eq(tw_limiter_destroy(home.limiter), -EBUSY);
	limited_pump(&home);
	expect_eq(tw_limiter_destroy(home.limiter), -EBUSY);
	load_submit(&loads[1]);
	complete(&loads[0], 0);
	complete(&loads[1], 0);
	close_all();
}

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
	close_all();
}

Test(limiter_bad_input, of_a_closed_service_is_refused)
{
	struct rig rig;
	struct tw_limiter_config config = limited_config(1);
	tw_limiter *other;
	rig_open(&rig, NULL);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, 0), 0);
	expect_eq(tw_limiter_create(&other, rig.service, &config), -ESHUTDOWN);
	rig_close(&rig);
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
	expect_ge(refusals, 4); /* options, nodes, the line, a runner, results */
	tw_limiter_resume(home.limiter);
	limited_pump(&home);
	expect_eq(load.dones, 1);
	close_all();
}

static void on_idle(void *arg, const struct tw_job_result *results, size_t n)
{
	(void)arg;
	(void)results;
	(void)n;
}

static void check_in_child(void *arg)
{
	struct load *load = arg;
	struct tw_limiter_config config = limited_config(1);
	struct tw_limiter_stats stats = {.size = sizeof(stats)};
	struct tw_limiter_task task = load_task(load);
	tw_limiter *other, *l = home.limiter;
	child_eq(tw_limiter_create(&other, home.rig.service, &config), -EPERM);
	child_eq(tw_limiter_submit_task(l, &task, NULL), -EPERM);
	child_eq(tw_limiter_submit(l, task.fn, load, NULL), -EPERM);
	child_eq(tw_limiter_resume(l), -EPERM);
	child_eq(tw_limiter_pause(l), -EPERM);
	child_eq(tw_limiter_resume(l), -EPERM);
	child_eq(tw_limiter_close(l, TW_CLOSE_DROP, TW_FOREVER), -EPERM);
	child_eq(tw_limiter_wait_idle(l, TW_FOREVER), -EPERM);
	child_eq(tw_limiter_on_idle(l, on_idle, NULL), -EPERM);
	child_eq(tw_limiter_set_max_concurrency(l, 2), -EPERM);
	child_eq(tw_limiter_stats(l, &stats), -EPERM);
	child_eq(tw_job_complete(l, load->job, 0, NULL), -EPERM);
	child_eq(tw_job_cancel(l, load->job), -EPERM);
	child_eq(tw_job_is_cancelled(l, load->job), false);
	child_eq(tw_job_wait(l, load->job, TW_FOREVER, NULL), -EPERM);
	child_eq(tw_job_state(l, load->job), -EPERM);
	child_eq(tw_job_forget(l, load->job), -EPERM);
	child_eq(tw_limiter_destroy(l), 0);
}

Test(limiter_bad_input, a_forked_child_is_refused_and_the_parent_untouched)
{
	struct load loads[2] = {LOAD(1, .held = true), LOAD(2)};
	open_started(1);
	load_submit(&loads[0]);
	load_submit(&loads[1]);
	limited_pump(&home);
	expect_in_child(check_in_child, &loads[0]);
	complete(&loads[0], 0);
	expect_eq(loads[1].dones, 1);
	close_all();
}

static pid_t forked;

static int fork_inside(void *arg, struct tw_job_run *run)
{
	(void)arg;
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
	close_all();
}
