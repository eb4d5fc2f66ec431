/* The child of a worker of a shared pool. test/contract has the answers of all calls in a child. */
#include <stdatomic.h>
#include <unistd.h>

#include "test/support/child.h"
#include "test/support/rig.h"

TestSuite(fork_pool, .timeout = 30);

static void count(void *arg)
{
	atomic_fetch_add((atomic_int *)arg, 1);
}

struct forking {
	tw_pool *pool;
	_Atomic pid_t child;
};

/*
 * The inherited pool is gone, so the thread is no worker any more. Its own pool lets it close, and
 * AddressSanitizer finds a look at the former pool.
 */
static void use_own_pool(tw_pool *inherited)
{
	atomic_int ran = 0;
	tw_pool *pool;
	struct tw_pool_config cfg = {.size = sizeof(cfg), .workers = 1, .max_workers = 1};
	child_eq(tw_pool_destroy(inherited), 0);
	child_eq(tw_pool_create(&pool, &cfg), 0);
	child_eq(tw_pool_submit(pool, count, &ran), 0);
	child_eq(tw_pool_destroy(pool), 0);
	child_eq(atomic_load(&ran), 1);
}

static void fork_inside(void *arg)
{
	struct forking *forking = arg;
	pid_t child = child_fork();
	if (child == 0) {
		use_own_pool(forking->pool);
		_exit(0);
	}
	forking->child = child;
}

Test(fork_pool, a_workers_child_that_has_destroyed_the_pool_may_use_its_own)
{
	struct forking forking = {0};
	struct tw_pool_config cfg = {.size = sizeof(cfg), .workers = 1, .max_workers = 1};
	expect_eq(tw_pool_create(&forking.pool, &cfg), 0);
	expect_eq(tw_pool_submit(forking.pool, fork_inside, &forking), 0);
	expect_eq(tw_pool_destroy(forking.pool), 0);
	expect_child_well(forking.child);
}
