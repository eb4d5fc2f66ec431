/* Services that share a pool. They come and go while it runs, and a closed pool takes none. */
#include <errno.h>
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
