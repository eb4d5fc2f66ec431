/*
 * How many workers a pool keeps and may have: bad input, defaults, and what an executor can hold;
 * and what else a config may not say.
 */
#include <errno.h>
#include <string.h>

#include "pools.h"
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
	tw_set_misuse_hook(NULL);
	snprintf(text, sizeof text, "%s: %s.%s has a value that the header does not allow", call,
		 type, member);
	cr_assert_str_eq(heard, text);
}

enum { SIZE = sizeof(struct tw_pool_config) };

static const struct {
	struct tw_pool_config cfg;
	const char *member;
} refused[] = {
    {{.size = SIZE, .workers = 3, .max_workers = 2}, "max_workers"},
    {{.size = SIZE, .workers = 3, .max_workers = 1025}, "max_workers"},
    {{.size = SIZE, .max_workers = 1025}, "max_workers"},
    {{.size = SIZE, .workers = 1025}, "workers"},
    {{.size = SIZE, .reserved = 7}, "reserved"},
    {{.size = SIZE, .queue = 8}, "queue"},
    {{.size = SIZE, .queue = 100}, "queue"},
    {{.size = SIZE, .queue = 1u << 25}, "queue"},
    {{.size = SIZE, .affinity = heard}, "affinity"},
    {{.size = SIZE, .affinity_size = 1}, "affinity"},
};

Test(pool_sizes, a_value_out_of_range_is_refused_with_a_text)
{
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		tw_pool *pool = NULL;
		tw_set_misuse_hook(hear);
		expect_eq(tw_pool_create(&pool, &refused[i].cfg), -EINVAL);
		cr_assert_null(pool);
		expect_heard("tw_pool_create", "tw_pool_config", refused[i].member);
	}
}

static const struct {
	uint32_t workers, max_workers;
	bool inline_runs;
	const char *member;
} services[] = {
    {3, 2, false, "max_workers"},
    {3, 1025, false, "max_workers"},
    {1025, 1025, false, "workers"},
    {0, 4, true, "max_workers"},
};

Test(pool_sizes, a_service_refuses_the_same_with_a_text)
{
	for (size_t i = 0; i < sizeof services / sizeof *services; i++) {
		tw_service *service = NULL;
		struct tw_service_config cfg = {
		    .size = sizeof cfg,
		    .workers = services[i].workers,
		    .max_workers = services[i].max_workers,
		    .executor = services[i].inline_runs ? tw_executor_inline() : NULL};
		tw_set_misuse_hook(hear);
		expect_eq(tw_service_create(&service, &cfg), -EINVAL);
		cr_assert_null(service);
		expect_heard("tw_service_create", "tw_service_config", services[i].member);
	}
}

Test(pool_sizes, a_config_may_be_of_another_version)
{
	struct {
		struct tw_pool_config known;
		char tail[16];
	} longer = {.known = {.size = sizeof longer, .workers = 1, .queue = 16}};
	struct tw_pool_config shorter = {.size = 8}, none = {.workers = 1};
	tw_pool *pool = NULL;
	expect_eq(tw_pool_create(&pool, &none), -EINVAL);
	expect_eq(tw_pool_create(&pool, &shorter), -EINVAL);
	longer.tail[3] = 1;
	expect_eq(tw_pool_create(&pool, &longer.known), -E2BIG);
	cr_assert_null(pool);
	longer.tail[3] = 0;
	expect_eq(tw_pool_create(&pool, &longer.known), 0);
	expect_eq(tw_pool_destroy(pool), 0);
}

static void expect_sizes(uint32_t workers, uint32_t max_workers, uint32_t permanent, uint32_t most)
{
	tw_pool *pool = pool_up_to(workers, max_workers);
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

/* How many blocking runs its executor holds: of a pool its maximum, else 0. */
static void expect_capacity(struct tw_service_config cfg, uint32_t wanted)
{
	tw_service *service;
	cfg.size = sizeof cfg;
	expect_eq(tw_service_create(&service, &cfg), 0);
	expect_eq(tw__executor_capacity(service->config.executor), wanted);
	expect_eq(tw_service_destroy(service), 0);
}

Test(pool_sizes, each_face_says_how_many_blocking_runs_it_holds)
{
	tw_pool *pool = pool_up_to(2, 5);
	expect_capacity((struct tw_service_config){.workers = 1, .max_workers = 7}, 7);
	expect_capacity((struct tw_service_config){.executor = tw_pool_executor(pool)}, 5);
	expect_capacity((struct tw_service_config){.executor = tw_executor_inline()}, 0);
	expect_eq(tw_pool_destroy(pool), 0);
}
