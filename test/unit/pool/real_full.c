/* tw_service_liveness reports a full pool, whatever kind of run waits for it. */
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "test/support/liveness.h"
#include "test/support/rig.h"

TestSuite(pool_real_full, .timeout = 60);

static struct {
	sem_t permits;
	atomic_int inside;
} gate;

static void pass(void *arg)
{
	(void)arg;
	atomic_fetch_add(&gate.inside, 1);
	while (sem_wait(&gate.permits) != 0) {
	}
}

static int pass_job(void *arg, struct tw_job_run *run)
{
	(void)run;
	pass(arg);
	return 0;
}

static void let_go(int n)
{
	while (n-- > 0)
		sem_post(&gate.permits);
}

static void await_value(atomic_int *value, int wanted)
{
	while (atomic_load(value) != wanted)
		sched_yield();
}

static void await_at_max(tw_service *service)
{
	while (!liveness_of(service).pool_at_max)
		sched_yield();
	expect_eq(liveness_of(service).pool_max_workers, 2);
}

/* A service whose pool has at most two workers. */
static tw_service *small_service(enum tw_drive drive)
{
	tw_service *service = NULL;
	struct tw_service_config cfg = {
	    .size = sizeof cfg, .workers = 1, .max_workers = 2, .drive = drive};
	sem_init(&gate.permits, 0, 0);
	expect_eq(tw_service_create(&service, &cfg), 0);
	return service;
}

static tw_limiter *limiters[3];

/* One job for each limiter, and no worker for two of them. */
static void open_limiters(tw_service *service)
{
	struct tw_limiter_config config = {.size = sizeof config, .max_concurrency = 1};
	for (int i = 0; i < 3; i++) {
		expect_eq(tw_limiter_create(&limiters[i], service, &config), 0);
		expect_eq(tw_limiter_submit(limiters[i], pass_job, NULL, NULL), 0);
	}
}

static void close_limiters(void)
{
	let_go(3);
	for (int i = 0; i < 3; i++) {
		expect_eq(tw_limiter_wait_idle(limiters[i], TW_FOREVER), 0);
		expect_eq(tw_limiter_destroy(limiters[i]), 0);
	}
}

static void beat(void *arg)
{
	(void)arg;
}

/* heartbeat: the worker that is kept free of jobs runs other things all the time. */
static void expect_reported(enum tw_drive drive, bool heartbeat)
{
	tw_service *service = small_service(drive);
	struct tw_period period = {.size = sizeof period, .period_ns = TW_MILLISECOND};
	if (heartbeat)
		expect_eq(tw_schedule_every(service, &period, beat, NULL, NULL), 0);
	open_limiters(service);
	await_value(&gate.inside, 1); /* its worker counts as full before it calls the job */
	await_at_max(service);
	expect_eq(atomic_load(&gate.inside), 1); /* of two workers one is kept free of jobs */
	close_limiters();
	expect_eq(tw_service_destroy(service), 0);
	atomic_store(&gate.inside, 0);
}

Test(pool_real_full, is_reported_when_jobs_of_limiters_wait)
{
	expect_reported(TW_DRIVE_THREAD, false);
	expect_reported(TW_DRIVE_THREAD, true);
	expect_reported(TW_DRIVE_MANUAL, false);
}

Test(pool_real_full, is_reported_when_work_comes_after_the_runs_that_fill_it)
{
	tw_service *service = small_service(TW_DRIVE_THREAD);
	tw_strand *strands[3];
	for (int i = 0; i < 3; i++)
		expect_eq(tw_strand_create(&strands[i], service, NULL), 0);
	for (int i = 0; i < 2; i++)
		expect_eq(tw_strand_submit(strands[i], pass, NULL), 0);
	await_value(&gate.inside, 2);
	expect_eq(liveness_of(service).pool_at_max, 0); /* nothing waits */
	expect_eq(tw_strand_submit(strands[2], pass, NULL), 0);
	await_at_max(service);
	let_go(3);
	await_value(&gate.inside, 3);
	expect_eq(liveness_of(service).pool_at_max, 0);
	for (int i = 0; i < 3; i++)
		expect_eq(tw_strand_destroy(strands[i]), 0);
	expect_eq(tw_service_destroy(service), 0);
}
