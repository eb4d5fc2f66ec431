/*
 * Waits from the only thread that could run what is waited for. They end with their timeout; calls
 * with timeout 0 do what they can.
 */
#include <errno.h>
#include <semaphore.h>

#include "test/support/rig.h"

TestSuite(close_only_thread, .timeout = 30);

/* What a plain task, or a strand's task, finds when it calls the library. */
struct visit {
	tw_service *service;
	tw_limiter *limiter;
	tw_job job;
	enum tw_close_mode mode;
	uint64_t timeout_ns;
	int closed, asked, waited, idle;
	sem_t done;
};

static void nothing(void *arg)
{
	(void)arg;
}

static void wait_for(struct visit *visit)
{
	while (sem_wait(&visit->done) != 0) {
	}
}

static tw_pool *pool_of(uint32_t workers)
{
	tw_pool *pool = NULL;
	struct tw_pool_config cfg = {
	    .size = sizeof cfg, .workers = workers, .max_workers = workers};
	expect_eq(tw_pool_create(&pool, &cfg), 0);
	return pool;
}

/* With a timer that is pending. */
static void visit_open(struct visit *visit, tw_executor *executor)
{
	struct tw_service_config cfg = {.size = sizeof cfg, .executor = executor};
	expect_eq(sem_init(&visit->done, 0, 0), 0);
	expect_eq(tw_service_create(&visit->service, &cfg), 0);
	expect_eq(tw_schedule(visit->service, 3600 * SECOND, nothing, NULL, NULL), 0);
}

static void close_it(void *arg)
{
	struct visit *visit = arg;
	visit->closed = tw_service_close(visit->service, visit->mode, visit->timeout_ns);
	sem_post(&visit->done);
}

static void expect_close_by_task(uint32_t workers, struct visit visit, int answer)
{
	tw_pool *pool = pool_of(workers);
	visit_open(&visit, tw_pool_executor(pool));
	expect_eq(tw_pool_submit(pool, close_it, &visit), 0);
	wait_for(&visit);
	expect_eq(visit.closed, answer);
	expect_eq(tw_service_destroy(visit.service), 0);
	expect_eq(tw_pool_destroy(pool), 0);
}

Test(close_only_thread, task_of_a_pool_closes_a_service_on_it)
{
	/* the run needs the worker that waits for it */
	expect_close_by_task(1, (struct visit){.mode = TW_CLOSE_RUN, .timeout_ns = 10 * MS},
			     -ETIMEDOUT);
	expect_close_by_task(1, (struct visit){.mode = TW_CLOSE_DROP, .timeout_ns = 20 * SECOND},
			     0);
	expect_close_by_task(2, (struct visit){.mode = TW_CLOSE_RUN, .timeout_ns = 20 * SECOND}, 0);
}

Test(close_only_thread, task_of_a_strand_closes_a_service_on_it)
{
	struct visit visit = {.mode = TW_CLOSE_RUN, .timeout_ns = 10 * MS};
	tw_service *base = NULL;
	tw_strand *strand = NULL;
	expect_eq(tw_service_create(&base, NULL), 0);
	expect_eq(tw_strand_create(&strand, base, NULL), 0);
	visit_open(&visit, tw_strand_executor(strand));
	expect_eq(tw_strand_submit(strand, close_it, &visit), 0);
	wait_for(&visit);
	expect_eq(visit.closed, -ETIMEDOUT);
	expect_eq(tw_service_destroy(visit.service), 0);
	expect_eq(tw_strand_destroy(strand), 0);
	expect_eq(tw_service_destroy(base), 0);
}

/* ------------------------------------------------------------------------ limiter */

static int succeed(void *arg, struct tw_job_run *run)
{
	(void)arg, (void)run;
	return 0;
}

static void wait_for_job(void *arg)
{
	struct visit *visit = arg;
	visit->closed = tw_limiter_submit(visit->limiter, succeed, NULL, &visit->job);
	visit->asked = tw_job_wait(visit->limiter, visit->job, 0, NULL);
	visit->waited = tw_job_wait(visit->limiter, visit->job, 10 * MS, NULL);
	visit->idle = tw_limiter_wait_idle(visit->limiter, 10 * MS);
	sem_post(&visit->done);
}

Test(close_only_thread, task_of_a_pool_waits_for_a_job_on_it)
{
	struct visit visit = {0};
	tw_pool *pool = pool_of(1);
	struct tw_limiter_config cfg = {
	    .size = sizeof cfg, .max_concurrency = 1, .flags = TW_LIMITER_NONBLOCKING};
	visit_open(&visit, tw_pool_executor(pool));
	expect_eq(tw_limiter_create(&visit.limiter, visit.service, &cfg), 0);
	expect_eq(tw_pool_submit(pool, wait_for_job, &visit), 0);
	wait_for(&visit);
	expect_eq(visit.closed, 0);
	expect_eq(visit.asked, -ETIMEDOUT);
	expect_eq(visit.waited, -ETIMEDOUT);
	expect_eq(visit.idle, -ETIMEDOUT);
	expect_eq(tw_limiter_wait_idle(visit.limiter, TW_FOREVER), 0);
	expect_eq(tw_limiter_destroy(visit.limiter), 0);
	expect_eq(tw_service_destroy(visit.service), 0);
	expect_eq(tw_pool_destroy(pool), 0);
}
