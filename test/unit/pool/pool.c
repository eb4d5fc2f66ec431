/* The pool: plain tasks, bounds, closing, services that share it, sizes. */
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

/* -------------------------------------------- services that come and go while it runs */

static tw_service *service_on(tw_executor *executor)
{
	tw_service *service = NULL;
	struct tw_service_config cfg = {.size = sizeof cfg, .executor = executor};
	expect_eq(tw_service_create(&service, &cfg), 0);
	return service;
}

Test(pool, serves_several_services_and_tasks)
{
	atomic_int ran = 0;
	tw_pool *pool = pool_of(2, 4096);
	tw_service *services[3];
	for (int i = 0; i < 3; i++)
		services[i] = service_on(tw_pool_executor(pool));
	expect_eq(pool_stats(pool).services, 3);
	expect_eq(tw_pool_close(pool, TW_CLOSE_DRAIN, NULL, NULL), -EBUSY);
	expect_eq(tw_pool_destroy(pool), -EBUSY);
	for (int i = 0; i < 3000; i++) {
		expect_eq(tw_schedule(services[i % 3], (uint64_t)(i % 20) * MS, count, &ran, NULL),
			  0);
		expect_eq(tw_pool_submit_wait(pool, count, &ran, TW_FOREVER), 0);
	}
	for (int i = 0; i < 3; i++) {
		expect_eq(tw_service_close(services[i], TW_CLOSE_DRAIN, TW_FOREVER), 0);
		expect_sound(services[i]);
		expect_eq(tw_service_destroy(services[i]), 0);
	}
	expect_eq(pool_stats(pool).services, 0);
	expect_eq(tw_pool_destroy(pool), 0);
	expect_eq(atomic_load(&ran), 6000);
}

Test(pool, a_closed_one_takes_no_service)
{
	tw_pool *pool = pool_of(1, 16);
	expect_eq(tw_pool_close(pool, TW_CLOSE_DRAIN, NULL, NULL), 0);
	tw_service *service = NULL;
	struct tw_service_config cfg = {.size = sizeof cfg, .executor = tw_pool_executor(pool)};
	expect_eq(tw_service_create(&service, &cfg), -ESHUTDOWN);
	cr_assert_null(service);
	expect_eq(tw_pool_destroy(pool), 0);
}

/* -------------------------------------------------------------------- sizes */

static void expect_sizes(uint32_t workers, uint32_t max_workers, uint32_t permanent, uint32_t most)
{
	tw_pool *pool = pool_up_to(workers, max_workers);
	expect_eq(pool->permanent, permanent);
	expect_eq(tw__pool_limits(tw_pool_executor(pool))->capacity, most);
	expect_eq(tw_pool_destroy(pool), 0);
}

Test(pool, the_maximum_is_64_or_workers_by_default)
{
	expect_sizes(1, 0, 1, 64);
	expect_sizes(64, 0, 64, 64);
	expect_sizes(65, 0, 65, 65);
	expect_sizes(2, 2, 2, 2);
	expect_sizes(1, 1024, 1, 1024);
	expect_sizes(0, 1, 1, 1); /* given alone, it bounds the default number of workers too */
}

/* How many blocking runs its pool holds. */
static void expect_capacity(struct tw_service_config cfg, uint32_t wanted)
{
	tw_service *service;
	cfg.size = sizeof cfg;
	expect_eq(tw_service_create(&service, &cfg), 0);
	expect_eq(tw__pool_limits(service->config.executor)->capacity, wanted);
	expect_eq(tw_service_destroy(service), 0);
}

Test(pool, each_face_says_how_many_blocking_runs_it_holds)
{
	tw_pool *pool = pool_up_to(2, 5);
	expect_capacity((struct tw_service_config){.workers = 1, .max_workers = 7}, 7);
	expect_capacity((struct tw_service_config){.executor = tw_pool_executor(pool)}, 5);
	expect_eq(tw_pool_destroy(pool), 0);
}
