/* Calls that a pool's only worker may not make, since it would wait for itself. */
#include <errno.h>
#include <semaphore.h>

#include "rows.h"

TestSuite(misuse_waits, .init = misuse_open, .fini = misuse_close, .timeout = 60);

/* What the worker did. The test looks at it after `done`. */
struct visit {
	tw_pool *pool;
	tw_scheduler *scheduler;
	int answer;
	sem_t done;
};

static void fill_and_wait(void *arg)
{
	struct visit *visit = arg;
	while (tw_pool_submit(visit->pool, misuse_fn, NULL) == 0) {
	}
	visit->answer = tw_pool_submit_wait(visit->pool, misuse_fn, NULL, TW_FOREVER);
	sem_post(&visit->done);
}

static int turn(struct tw_turn *now, void *arg)
{
	(void)now, (void)arg;
	return TW_TURN_DONE;
}

static void submit_and_close(void *arg)
{
	struct visit *visit = arg;
	tw_scheduler_submit(visit->scheduler, TW_PRIORITY_NORMAL, turn, NULL, NULL);
	visit->answer = tw_scheduler_close(visit->scheduler, TW_FOREVER);
	sem_post(&visit->done);
}

static void visit_worker(struct visit *visit, tw_fn *fn)
{
	misuse_begin();
	expect_eq(sem_init(&visit->done, 0, 0), 0);
	expect_eq(tw_pool_submit(visit->pool, fn, visit), 0);
	while (sem_wait(&visit->done) != 0) {
	}
}

Test(misuse_waits, from_the_only_worker)
{
	struct visit visit = {0};
	expect_eq(tw_pool_create(&visit.pool, STRUCT(tw_pool_config, .workers = 1, .max_workers = 1,
						     .queue = 16)),
		  0);
	visit_worker(&visit, fill_and_wait);
	misuse_expect("tw_pool_submit_wait", visit.answer, -EDEADLK,
		      "tw_pool_submit_wait: the queue is full, and a worker would wait");
	expect_eq(tw_pool_close(visit.pool, TW_CLOSE_DRAIN, NULL, NULL), 0);
	expect_eq(tw_pool_destroy(visit.pool), 0);
}

Test(misuse_waits, for_work_of_a_scheduler)
{
	struct visit visit = {0};
	expect_eq(
	    tw_pool_create(&visit.pool, STRUCT(tw_pool_config, .workers = 1, .max_workers = 1)), 0);
	expect_eq(tw_scheduler_create(
		      &visit.scheduler, manual,
		      STRUCT(tw_scheduler_config, .executor = tw_pool_executor(visit.pool))),
		  0);
	visit_worker(&visit, submit_and_close);
	misuse_expect("tw_scheduler_close", visit.answer, -EDEADLK,
		      "tw_scheduler_close: its work waits for this worker");
	expect_eq(tw_scheduler_destroy(visit.scheduler), 0);
	expect_eq(tw_pool_destroy(visit.pool), 0);
}
