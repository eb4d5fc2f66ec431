/*
 * How many workers a pool keeps and may have: defaults, and what an executor can hold. misuse/ has
 * what a config may not say.
 */

#include "pools.h"
#include "test/support/rig.h"

TestSuite(pool_sizes, .timeout = 30);

static void expect_sizes(uint32_t workers, uint32_t max_workers, uint32_t permanent, uint32_t most)
{
	tw_pool *pool = pool_up_to(workers, max_workers);
	expect_eq(pool->permanent, permanent);
	expect_eq(tw__pool_limits(tw_pool_executor(pool))->capacity, most);
	expect_eq(tw_pool_destroy(pool), 0);
}

Test(pool_sizes, the_maximum_is_64_or_workers_by_default)
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

Test(pool_sizes, each_face_says_how_many_blocking_runs_it_holds)
{
	tw_pool *pool = pool_up_to(2, 5);
	expect_capacity((struct tw_service_config){.workers = 1, .max_workers = 7}, 7);
	expect_capacity((struct tw_service_config){.executor = tw_pool_executor(pool)}, 5);
	expect_eq(tw_pool_destroy(pool), 0);
}
