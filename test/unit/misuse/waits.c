/* A call that a pool's worker may not make, since it could wait for itself. */
#include <errno.h>
#include <semaphore.h>

#include "rows.h"

TestSuite(misuse_waits, .init = misuse_open, .fini = misuse_close, .timeout = 60);

/* What the worker did. The test looks at it after `done`. */
struct visit {
	tw_pool *pool;
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

Test(misuse_waits, from_the_only_worker)
{
	struct visit visit = {0};
	expect_eq(tw_pool_create(&visit.pool, STRUCT(tw_pool_config, .workers = 1, .max_workers = 1,
						     .queue = 16)),
		  0);
	misuse_begin();
	expect_eq(sem_init(&visit.done, 0, 0), 0);
	expect_eq(tw_pool_submit(visit.pool, fill_and_wait, &visit), 0);
	while (sem_wait(&visit.done) != 0) {
	}
	misuse_expect("tw_pool_submit_wait", visit.answer, -EDEADLK,
		      "tw_pool_submit_wait: " WAITS_INSIDE);
	expect_eq(tw_pool_close(visit.pool, TW_CLOSE_DRAIN, NULL, NULL), 0);
	expect_eq(tw_pool_destroy(visit.pool), 0);
}
