/* Services that share a pool. They come and go while it runs, and a closed pool takes none. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "pools.h"
#include "test/support/rig.h"

TestSuite(pool_services, .timeout = 30);

static tw_service *service_on(tw_executor *executor)
{
	tw_service *service = NULL;
	struct tw_service_config cfg = {.size = sizeof cfg, .executor = executor};
	expect_eq(tw_service_create(&service, &cfg), 0);
	return service;
}

Test(pool_services, serves_several_services_and_tasks)
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

struct churner {
	tw_pool *pool;
	atomic_int ran;
	int scheduled, wrong;
	pthread_t thread;
};

static void *churn_services(void *arg)
{
	struct churner *c = arg;
	struct tw_service_config cfg = {
	    .size = sizeof cfg, .tick_ns = 50000, .executor = tw_pool_executor(c->pool)};
	for (int round = 0; round < 40; round++) {
		tw_service *service;
		if (tw_service_create(&service, &cfg)) {
			c->wrong++;
			continue;
		}
		for (int i = 0; i < 200; i++)
			c->scheduled += tw_schedule(service, (uint64_t)(i % 4) * 50000, count,
						    &c->ran, NULL) == 0;
		c->wrong += tw_service_close(service, TW_CLOSE_DRAIN, TW_FOREVER) != 0;
		c->wrong += tw_service_destroy(service) != 0;
	}
	return NULL;
}

/*
 * Services come and go on a pool whose workers never rest: none of them touches the memory of one
 * that has gone.
 */
Test(pool_services, outlives_services_that_come_and_go)
{
	tw_pool *pool = pool_of(3, 16);
	struct churner churners[3];
	for (int i = 0; i < 3; i++) {
		churners[i] = (struct churner){.pool = pool};
		expect_eq(pthread_create(&churners[i].thread, NULL, churn_services, &churners[i]),
			  0);
	}
	for (int i = 0; i < 3; i++) {
		pthread_join(churners[i].thread, NULL);
		expect_eq(churners[i].wrong, 0);
		expect_eq(atomic_load(&churners[i].ran), churners[i].scheduled);
	}
	expect_eq(pool_stats(pool).services, 0);
	expect_eq(tw_pool_destroy(pool), 0);
}

Test(pool_services, a_closed_one_takes_no_service)
{
	tw_pool *pool = pool_of(1, 16);
	expect_eq(tw_pool_close(pool, TW_CLOSE_DRAIN, NULL, NULL), 0);
	tw_service *service = NULL;
	struct tw_service_config cfg = {.size = sizeof cfg, .executor = tw_pool_executor(pool)};
	expect_eq(tw_service_create(&service, &cfg), -ESHUTDOWN);
	cr_assert_null(service);
	expect_eq(tw_pool_destroy(pool), 0);
}
