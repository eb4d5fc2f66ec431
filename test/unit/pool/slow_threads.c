/* Growth while new threads wait for a processor. */
#include "pools.h"
#include "test/support/faults.h"
#include "test/support/rig.h"

TestSuite(pool_slow_threads, .timeout = 120);

enum { LOOKS = 100 };

/* About to sleep. While the two first workers are inside callbacks: the starter, after a look. */
static void count_looks(void *arg)
{
	atomic_fetch_add((atomic_int *)arg, 1);
}

static void count_its_looks(void *arg)
{
	faults_at_sleeps(count_looks, arg);
}

/*
 * As many threads are started as things wait, though none of them has begun to run; and then no
 * more.
 */
static void expect_one_thread_for_each(int jobs)
{
	struct gate callbacks = {0}, processors = {0}; /* new threads wait for a processor */
	atomic_int looks = 0;
	faults_at_starts(count_its_looks, &looks);
	tw_pool *pool = pool_up_to(2, 0);
	faults_at_starts(pass, &processors);
	block(pool, &callbacks, jobs);
	while (pool_stats(pool).grown < (uint64_t)jobs - 2)
		sched_yield();
	int from = atomic_load(&looks);
	while (atomic_load(&looks) < from + LOOKS)
		sched_yield();
	expect_eq(pool_stats(pool).grown, jobs - 2);
	expect_eq(atomic_load(&callbacks.inside), 2);
	let_go(&processors, 64);
	let_go(&callbacks, jobs);
	expect_eq(tw_pool_destroy(pool), 0);
	faults_at_starts(NULL, NULL);
}

Test(pool_slow_threads, are_no_more_than_things_wait_and_hold_up_no_other)
{
	expect_one_thread_for_each(3);
	expect_one_thread_for_each(63);
}
