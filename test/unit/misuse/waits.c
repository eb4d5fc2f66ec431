/* The hook itself, and a call that a pool's worker may not make, since it could wait for itself. */
#include <errno.h>
#include <semaphore.h>

#include "rows.h"

TestSuite(misuse_waits, .init = misuse_open, .fini = misuse_close, .timeout = 60);

static int create_with_too_many_workers(void)
{
	tw_pool *other;
	return tw_pool_create(&other, STRUCT(tw_pool_config, .workers = 1025));
}

static int again;

static void refuse_again(const char *text)
{
	again++;
	tw_set_misuse_hook(NULL);
	expect_eq(create_with_too_many_workers(), -EINVAL);
}

Test(misuse_waits, the_hook_may_call_the_library_and_is_silent_when_it_is_taken_away)
{
	tw_set_misuse_hook(refuse_again);
	expect_eq(create_with_too_many_workers(), -EINVAL);
	expect_eq(create_with_too_many_workers(), -EINVAL);
	expect_eq(again, 1);
}

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
