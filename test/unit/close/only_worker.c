/* Waits from the only thread that could run what is waited for: they are refused, with a text. */
#include <errno.h>
#include <semaphore.h>
#include <string.h>

#include "test/support/rig.h"

TestSuite(close_only_worker, .timeout = 30);

static char heard[512];

static void hear(const char *text)
{
	strncpy(heard, text, sizeof heard - 1);
}

/* What a plain task, or a strand's task, finds when it calls the library. */
struct visit {
	tw_service *service;
	tw_limiter *limiter;
	tw_job job;
	tw_timer timer;
	int with_wait, without_wait, destroyed, asked;
	sem_t done;
};

static void close_it(void *arg)
{
	struct visit *visit = arg;
	/* it waits for the tick thread alone, which may wait for a processor */
	struct tw_close_options no_wait = {
	    .size = sizeof no_wait, .flags = TW_CLOSE_FLAG_NO_WAIT, .timeout_ns = 20 * SECOND};
	visit->with_wait = tw_service_close(visit->service, TW_CLOSE_RUN, 10 * MS);
	visit->destroyed = visit->with_wait == -EDEADLK ? tw_service_destroy(visit->service) : 0;
	visit->asked = tw_is_pending(visit->service, visit->timer);
	visit->without_wait = tw_service_close_with(visit->service, &no_wait);
	sem_post(&visit->done);
}

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

static tw_service *service_on(tw_executor *executor)
{
	tw_service *service = NULL;
	struct tw_service_config cfg = {.size = sizeof cfg, .executor = executor};
	expect_eq(tw_service_create(&service, &cfg), 0);
	return service;
}

static void visit_open(struct visit *visit, tw_service *service)
{
	*visit = (struct visit){.service = service};
	sem_init(&visit->done, 0, 0);
	expect_eq(tw_schedule(service, 3600 * SECOND, nothing, NULL, &visit->timer), 0);
}

static void expect_refused(const struct visit *visit)
{
	expect_eq(visit->with_wait, -EDEADLK);
	expect_eq(visit->destroyed, -EDEADLK);
	expect_eq(visit->asked, true); /* nothing has changed */
	expect_eq(visit->without_wait, 0);
	cr_assert_str_eq(
	    heard,
	    "tw_service_destroy: called by the only thread that runs the service's callbacks; "
	    "call it from another thread, or raise max_workers");
}

Test(close_only_worker, may_not_wait_for_the_close_of_a_service_on_its_pool)
{
	struct visit visit;
	tw_pool *pool = pool_of(1);
	tw_set_misuse_hook(hear);
	visit_open(&visit, service_on(tw_pool_executor(pool)));
	expect_eq(tw_pool_submit(pool, close_it, &visit), 0);
	wait_for(&visit);
	expect_refused(&visit);
	expect_eq(tw_service_destroy(visit.service), 0);
	expect_eq(tw_pool_destroy(pool), 0);
	tw_set_misuse_hook(NULL);
}

Test(close_only_worker, of_two_may_wait_for_it)
{
	struct visit visit;
	tw_pool *pool = pool_of(2);
	visit_open(&visit, service_on(tw_pool_executor(pool)));
	expect_eq(tw_pool_submit(pool, close_it, &visit), 0);
	wait_for(&visit);
	expect_ne(visit.with_wait, -EDEADLK);
	expect_eq(tw_service_destroy(visit.service), 0);
	expect_eq(tw_pool_destroy(pool), 0);
}

/* The close has freed the service's own pool. */
static void destroy_closed(void *arg)
{
	struct visit *visit = arg;
	visit->destroyed = tw_service_destroy(visit->service);
	sem_post(&visit->done);
}

Test(close_only_worker, of_another_pool_may_destroy_a_service_that_is_closed)
{
	struct visit visit = {.destroyed = 1};
	tw_pool *pool = pool_of(1);
	sem_init(&visit.done, 0, 0);
	visit.service = service_on(NULL);
	expect_eq(tw_service_close(visit.service, TW_CLOSE_DROP, TW_FOREVER), 0);
	expect_eq(tw_pool_submit(pool, destroy_closed, &visit), 0);
	wait_for(&visit);
	expect_eq(visit.destroyed, 0);
	expect_eq(tw_pool_destroy(pool), 0);
}

/* A service whose callbacks run on a strand, closed by a task of that strand. */
Test(close_only_worker, task_of_a_strand_may_not_wait_for_the_close_of_a_service_on_it)
{
	struct visit visit;
	tw_strand *strand;
	tw_service *base = service_on(NULL);
	tw_set_misuse_hook(hear);
	expect_eq(tw_strand_create(&strand, base, NULL), 0);
	visit_open(&visit, service_on(tw_strand_executor(strand)));
	expect_eq(tw_strand_submit(strand, close_it, &visit), 0);
	wait_for(&visit);
	expect_refused(&visit);
	expect_eq(tw_service_destroy(visit.service), 0);
	expect_eq(tw_strand_destroy(strand), 0);
	expect_eq(tw_service_destroy(base), 0);
	tw_set_misuse_hook(NULL);
}

/* ------------------------------------------------------------------------ limiter */

static int succeed(void *arg, struct tw_job_run *run)
{
	(void)arg;
	(void)run;
	return 0;
}

static void wait_for_job(void *arg)
{
	struct visit *visit = arg;
	visit->without_wait = tw_limiter_submit(visit->limiter, succeed, NULL, &visit->job);
	visit->asked = tw_job_wait(visit->limiter, visit->job, 0, NULL);
	visit->with_wait = tw_job_wait(visit->limiter, visit->job, 10 * MS, NULL);
	visit->destroyed = tw_limiter_wait_idle(visit->limiter, 10 * MS);
	sem_post(&visit->done);
}

Test(close_only_worker, may_not_wait_for_a_job_on_its_pool)
{
	struct visit visit;
	tw_pool *pool = pool_of(1);
	struct tw_limiter_config cfg = {
	    .size = sizeof cfg, .max_concurrency = 1, .flags = TW_LIMITER_NONBLOCKING};
	visit_open(&visit, service_on(tw_pool_executor(pool)));
	expect_eq(tw_limiter_create(&visit.limiter, visit.service, &cfg), 0);
	expect_eq(tw_limiter_resume(visit.limiter), 0);
	expect_eq(tw_pool_submit(pool, wait_for_job, &visit), 0);
	wait_for(&visit);
	expect_eq(visit.without_wait, 0);
	expect_eq(visit.asked, -ETIMEDOUT);
	expect_eq(visit.with_wait, -EDEADLK);
	expect_eq(visit.destroyed, -EDEADLK);
	expect_eq(tw_limiter_wait_idle(visit.limiter, TW_FOREVER), 0);
	expect_eq(tw_limiter_destroy(visit.limiter), 0);
	expect_eq(tw_service_destroy(visit.service), 0);
	expect_eq(tw_pool_destroy(pool), 0);
}
