/*
 * User functions that block until the job has settled: its total timeout settles it all the same.
 * On real threads. No bound on any time: a function that delayed the settle would never return.
 */
#include <errno.h>
#include <stdatomic.h>

#include "test/support/shot.h"

TestSuite(limiter_real_slow, .timeout = 60);

static sem_t settled;
static atomic_int blocked, dones, releases;

static void block(void)
{
	atomic_fetch_add(&blocked, 1);
	await(&settled, 1);
	sem_post(&settled); /* for all that come after */
	expect_eq(atomic_load(&releases), 0);
}

static int fail(void *arg, struct tw_job_run *run)
{
	(void)arg, (void)run;
	return -EIO;
}

static int pend(void *arg, struct tw_job_run *run)
{
	(void)arg, (void)run;
	return TW_JOB_PENDING;
}

static bool allow(void *arg, tw_job job, int error, uint32_t attempt, int64_t *delay_ns)
{
	(void)arg, (void)job, (void)error, (void)attempt, (void)delay_ns;
	block();
	return true;
}

/* The attempt ends here, and would be retried. */
static tw_limiter *limiter;

static void stop(void *arg, tw_job job, enum tw_job_status why)
{
	(void)arg, (void)why;
	expect_ge(tw_job_complete(limiter, job, -EIO, NULL), 0);
	block();
}

static void on_event(void *arg, const struct tw_limiter_event *event)
{
	(void)arg;
	if (event->kind == TW_LIMITER_EVENT_STARTED)
		block();
}

static void on_done(void *arg, const struct tw_job_result *result)
{
	(void)arg;
	expect_eq(result->status, TW_JOB_STATUS_TIMED_OUT);
	atomic_fetch_add(&dones, 1);
}

static void on_release(void *arg)
{
	(void)arg;
	expect_eq(atomic_load(&dones), 1);
	atomic_fetch_add(&releases, 1);
}

/* workers 1: the function that blocks has the only one. */
static void expect_settled_in_time(struct tw_limiter_task task, bool with_event, uint32_t workers)
{
	tw_job job;
	struct tw_job_result result;
	struct tw_limiter_config config = {
	    .size = sizeof config, .max_concurrency = 1, .flags = TW_LIMITER_NONBLOCKING};
	struct tw_service_config one = {
	    .size = sizeof one, .workers = workers, .max_workers = workers};
	tw_service *service;
	expect_eq(tw_service_create(&service, &one), 0);
	config.event = with_event ? on_event : NULL;
	expect_eq(sem_init(&settled, 0, 0), 0);
	atomic_store(&blocked, 0);
	atomic_store(&dones, 0);
	atomic_store(&releases, 0);
	expect_eq(tw_limiter_create(&limiter, service, &config), 0);
	task.size = sizeof task;
	task.done = on_done;
	task.release = on_release;
	task.timeout_ns = 50 * MS;
	task.retry.count = 1;
	expect_eq(tw_limiter_submit_task(limiter, &task, &job), 0);
	while (!atomic_load(&blocked))
		expect_ne(tw_job_state(limiter, job), TW_JOB_STATE_GONE);
	expect_eq(tw_job_wait(limiter, job, 30 * SECOND, &result), 0);
	expect_eq(result.status, TW_JOB_STATUS_TIMED_OUT);
	expect_eq(atomic_load(&releases), 0);
	sem_post(&settled);
	expect_eq(tw_limiter_wait_idle(limiter, TW_FOREVER), 0);
	expect_eq(atomic_load(&dones), 1);
	expect_eq(atomic_load(&releases), 1);
	expect_eq(tw_limiter_destroy(limiter), 0);
	expect_eq(tw_service_destroy(service), 0);
	sem_destroy(&settled);
}

Test(limiter_real_slow, job_settles_in_time_though_its_predicate_blocks)
{
	for (uint32_t workers = 1; workers <= 2; workers++)
		expect_settled_in_time((struct tw_limiter_task){.fn = fail, .retry.allow = allow},
				       false, workers);
}

Test(limiter_real_slow, job_settles_in_time_though_its_stop_blocks)
{
	for (uint32_t workers = 1; workers <= 2; workers++)
		expect_settled_in_time((struct tw_limiter_task){.fn = pend,
								.stop = stop,
								.flags = TW_LIMITER_TASK_ASYNC,
								.attempt_timeout_ns = 10 * MS},
				       false, workers);
}

Test(limiter_real_slow, job_settles_in_time_though_started_blocks)
{
	for (uint32_t workers = 1; workers <= 2; workers++)
		expect_settled_in_time((struct tw_limiter_task){.fn = fail}, true, workers);
}
