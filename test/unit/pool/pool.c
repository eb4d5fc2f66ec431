/* The pool: plain tasks, bounds, closing, and want of memory. */
#include "tickwheel/pool.h"

#include <errno.h>
#include <pthread.h>

#include "pools.h"
#include "test/support/rig.h"

TestSuite(pool, .timeout = 30);

/* -------------------------------------------------------------- plain tasks */

static int order[1000], ordered;

static void note_order(void *arg)
{
	order[ordered++] = (int)(intptr_t)arg;
}

Test(pool, one_worker_runs_in_the_order_of_submission)
{
	tw_pool *pool = pool_of(1, 1024);
	for (intptr_t i = 0; i < 1000; i++)
		expect_eq(tw_pool_submit(pool, note_order, (void *)i), 0);
	expect_eq(tw_pool_destroy(pool), 0);
	expect_eq(ordered, 1000);
	for (int i = 0; i < 1000; i++)
		expect_eq(order[i], i);
}

static void tell(void *told_arg, tw_fn *fn, void *arg)
{
	(void)arg;
	*(int *)told_arg += fn == count;
}

static struct gate gate;

/* Lets the running task go once the queue is empty: close drops tasks before it waits for it. */
static void *let_go_when_empty(void *pool)
{
	struct tw_pool_stats stats = {.size = sizeof stats};
	while (tw_pool_stats(pool, &stats) == 0 && stats.queued > 0)
		sched_yield();
	let_go(&gate, 1);
	return NULL;
}

Test(pool, close_with_drop_tells_of_each)
{
	atomic_int ran = 0;
	int told = 0;
	tw_pool *pool = pool_of(1, 64);
	occupy(pool, &gate, 1);
	for (int i = 0; i < 50; i++)
		expect_eq(tw_pool_submit(pool, count, &ran), 0);
	expect_eq(pool_stats(pool).queued, 50);
	expect_eq(pool_stats(pool).running, 1);
	pthread_t opener;
	expect_eq(pthread_create(&opener, NULL, let_go_when_empty, pool), 0);
	expect_eq(tw_pool_close(pool, TW_CLOSE_DROP, tell, &told), 0);
	pthread_join(opener, NULL);
	expect_eq(told, 50);
	expect_eq(atomic_load(&ran), 0);
	expect_eq(tw_pool_submit(pool, count, &ran), -ESHUTDOWN);
	expect_eq(tw_pool_submit_wait(pool, count, &ran, TW_FOREVER), -ESHUTDOWN);
	expect_eq(tw_pool_close(pool, TW_CLOSE_DROP, NULL, NULL), 0);
	expect_eq(tw_pool_destroy(pool), 0);
}

Test(pool, has_no_workers_after_a_close)
{
	tw_pool *pool = pool_of(2, 16);
	expect_eq(pool_stats(pool).workers, 2);
	expect_eq(tw_pool_close(pool, TW_CLOSE_DRAIN, NULL, NULL), 0);
	expect_eq(pool_stats(pool).workers, 0);
	expect_eq(tw_pool_destroy(pool), 0);
}

/* -------------------------------------------------------------------- bounds */

static int fill(tw_pool *pool, atomic_int *ran)
{
	int n = 0;
	while (tw_pool_submit(pool, count, ran) == 0)
		n++;
	return n;
}

Test(pool, refuses_what_its_queue_cannot_hold)
{
	atomic_int ran = 0;
	tw_pool *pool = pool_of(1, 16);
	occupy(pool, &gate, 1);
	expect_eq(fill(pool, &ran), 16);
	expect_eq(tw_pool_submit(pool, count, &ran), -EAGAIN);
	expect_eq(tw_pool_submit_wait(pool, count, &ran, 5 * MS), -ETIMEDOUT);
	expect_eq(pool_stats(pool).rejected, 3);
	let_go(&gate, 1);
	expect_eq(tw_pool_submit_wait(pool, count, &ran, TW_FOREVER), 0);
	expect_eq(tw_pool_destroy(pool), 0);
	expect_eq(atomic_load(&ran), 17);
}

Test(pool, a_slow_task_delays_no_other_while_a_worker_is_free)
{
	atomic_int ran = 0;
	tw_pool *pool = pool_of(2, 1024);
	occupy(pool, &gate, 1);
	for (int i = 0; i < 500; i++)
		expect_eq(tw_pool_submit(pool, count, &ran), 0);
	await_value(&ran, 500); /* forever, if they wait for the slow one */
	expect_eq(gate.passed, 0);
	let_go(&gate, 1);
	expect_eq(tw_pool_destroy(pool), 0);
}

Test(pool, times_some_of_what_it_runs)
{
	atomic_int ran = 0;
	tw_pool *pool = pool_of(2, 4096);
	for (int i = 0; i < 1600; i++)
		expect_eq(tw_pool_submit(pool, count, &ran), 0);
	expect_eq(tw_pool_close(pool, TW_CLOSE_DRAIN, NULL, NULL), 0);
	struct tw_pool_stats stats = pool_stats(pool);
	expect_eq(stats.completed, 1600);
	expect_eq(stats.wait.count, 100);
	expect_eq(stats.run.count, 100);
	expect_ge(stats.wait.max_ns, stats.wait.p50_ns / 2);
	expect_eq(tw_pool_destroy(pool), 0);
}
