/*
 * Waits from the only thread that could run what is waited for. They end with their timeout; calls
 * with timeout 0 do what they can.
 */
#include <errno.h>
#include <semaphore.h>

#include "test/support/rig.h"

TestSuite(close_only_thread, .timeout = 30);

/* What a plain task finds when it calls the library. */
struct visit {
	tw_service *service;
	enum tw_close_mode mode;
	uint64_t timeout_ns;
	int closed;
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
