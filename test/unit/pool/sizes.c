/*
 * How many workers a pool keeps and may have: bad input, defaults, and what an executor can hold.
 */
#include <errno.h>
#include <string.h>

#include "executor/pool/internal.h"
#include "executor/pool/parts.h"
#include "test/support/rig.h"

TestSuite(pool_sizes, .timeout = 30);

static char heard[256];

static void hear(const char *text)
{
	strncpy(heard, text, sizeof heard - 1);
}

static void expect_heard(const char *call, const char *type, const char *member)
{
	char text[128];
	snprintf(text, sizeof text, "%s: %s.%s has a value that the header does not allow", call,
		 type, member);
	cr_assert_str_eq(heard, text);
}

static void expect_pool_refused(uint32_t workers, uint32_t max_workers, const char *member)
{
	tw_pool *pool = NULL;
	struct tw_pool_config cfg = {
	    .size = sizeof cfg, .workers = workers, .max_workers = max_workers};
	tw_set_misuse_hook(hear);
	expect_eq(tw_pool_create(&pool, &cfg), -EINVAL);
	tw_set_misuse_hook(NULL);
	cr_assert_null(pool);
	expect_heard("tw_pool_create", "tw_pool_config", member);
}

static void expect_service_refused(const struct tw_service_config *cfg, const char *member)
{
	tw_service *service = NULL;
	tw_set_misuse_hook(hear);
	expect_eq(tw_service_create(&service, cfg), -EINVAL);
	tw_set_misuse_hook(NULL);
	cr_assert_null(service);
	expect_heard("tw_service_create", "tw_service_config", member);
}

Test(pool_sizes, a_maximum_out_of_range_is_refused_with_a_text)
{
	expect_pool_refused(3, 2, "max_workers");
	expect_pool_refused(3, 1025, "max_workers");
	expect_pool_refused(0, 1025, "max_workers");
	struct tw_pool_config reserved = {.size = sizeof reserved, .reserved = 7};
	tw_pool *pool = NULL;
	expect_eq(tw_pool_create(&pool, &reserved), -EINVAL);
	cr_assert_null(pool);
}

Test(pool_sizes, a_service_refuses_the_same_with_a_text)
{
	struct tw_service_config cfg = {.size = sizeof cfg, .workers = 3, .max_workers = 2};
	expect_service_refused(&cfg, "max_workers");
	cfg.max_workers = 1025;
	expect_service_refused(&cfg, "max_workers");
	cfg.workers = 1025;
	expect_service_refused(&cfg, "workers");
	cfg = (struct tw_service_config){
	    .size = sizeof cfg, .max_workers = 4, .executor = tw_executor_inline()};
	expect_service_refused(&cfg, "max_workers");
}

static void expect_sizes(uint32_t workers, uint32_t max_workers, uint32_t permanent, uint32_t most)
{
	tw_pool *pool;
	struct tw_pool_config cfg = {
	    .size = sizeof cfg, .workers = workers, .max_workers = max_workers};
	expect_eq(tw_pool_create(&pool, &cfg), 0);
	expect_eq(pool->permanent, permanent);
	expect_eq(tw__executor_capacity(tw_pool_executor(pool)), most);
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

Test(pool_sizes, each_face_says_how_many_blocking_runs_it_holds)
{
	tw_pool *pool;
	tw_service *own, *shared, *inline_runs;
	struct tw_pool_config cfg = {.size = sizeof cfg, .workers = 2, .max_workers = 5};
	expect_eq(tw_pool_create(&pool, &cfg), 0);
	struct tw_service_config own_cfg = {.size = sizeof own_cfg, .workers = 1, .max_workers = 7};
	expect_eq(tw_service_create(&own, &own_cfg), 0);
	struct tw_service_config shared_cfg = {.size = sizeof shared_cfg,
					       .executor = tw_pool_executor(pool)};
	expect_eq(tw_service_create(&shared, &shared_cfg), 0);
	struct tw_service_config inline_cfg = {.size = sizeof inline_cfg,
					       .executor = tw_executor_inline()};
	expect_eq(tw_service_create(&inline_runs, &inline_cfg), 0);
	expect_eq(tw__executor_capacity(own->config.executor), 7);
	expect_eq(tw__executor_capacity(shared->config.executor), 5);
	expect_eq(tw__executor_capacity(inline_runs->config.executor), 0);
	expect_eq(tw_service_destroy(inline_runs), 0);
	expect_eq(tw_service_destroy(shared), 0);
	expect_eq(tw_service_destroy(own), 0);
	expect_eq(tw_pool_destroy(pool), 0);
}
