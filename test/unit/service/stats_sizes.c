/*
 * Statistics for programs that know more of a struct than the library, or less: what the library
 * does not know is zero, what lies behind the program's struct is left alone. The same for each
 * kind of struct.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/support/actions.h"
#include "test/support/rig.h"

TestSuite(service_stats_sizes, .timeout = 30);

enum { TAIL = 24, MOST = 1024, MARK = 0xa5 };

/* A call that fills a struct whose first member is its size. */
typedef int get_fn(void *of, void *out);

static bool all_are(const unsigned char *bytes, size_t n, unsigned char value)
{
	for (size_t i = 0; i < n; i++)
		if (bytes[i] != value)
			return false;
	return true;
}

/* known: the library's size; least: the smallest that it takes. */
static void expect_sizes_are_kept(get_fn *get, void *of, size_t known, size_t least)
{
	_Alignas(max_align_t) unsigned char bytes[MOST];
	cr_assert(known + TAIL <= MOST);
	for (size_t size = known + TAIL; size >= least; size--) {
		memset(bytes, MARK, sizeof bytes);
		memcpy(bytes, &size, sizeof size);
		expect_eq(get(of, bytes), 0);
		if (size > known)
			cr_assert(all_are(bytes + known, size - known, 0));
		cr_assert(all_are(bytes + size, sizeof bytes - size, MARK), "size %zu", size);
	}
	size_t size = least - 1;
	memset(bytes, MARK, sizeof bytes);
	memcpy(bytes, &size, sizeof size);
	expect_eq(get(of, bytes), -EINVAL);
	cr_assert(all_are(bytes + sizeof size, sizeof bytes - sizeof size, MARK));
}

static int get_action(void *of, void *out)
{
	return tw_action_scheduler_stats(of, out);
}

Test(service_stats_sizes, of_actions)
{
	tw_action_scheduler *asap = scheduler_of(
	    &(struct tw_action_scheduler_config){.size = sizeof(struct tw_action_scheduler_config),
						 .kind = TW_ACTION_KIND_ASAP,
						 .flags = TW_ACTION_FLAG_BY_CALLER});
	expect_sizes_are_kept(get_action, asap, sizeof(struct tw_action_scheduler_stats),
			      offsetof(struct tw_action_scheduler_stats, armed));
	expect_eq(tw_action_scheduler_destroy(asap), 0);
}

static int get_limiter(void *of, void *out)
{
	return tw_limiter_stats(of, out);
}

Test(service_stats_sizes, of_a_limiter)
{
	struct rig rig;
	tw_limiter *limiter;
	struct tw_limiter_config config = {.size = sizeof config, .max_concurrency = 2};
	rig_open(&rig, NULL);
	expect_eq(tw_limiter_create(&limiter, rig.service, &config), 0);
	expect_sizes_are_kept(get_limiter, limiter, sizeof(struct tw_limiter_stats),
			      offsetof(struct tw_limiter_stats, running));
	expect_eq(tw_limiter_destroy(limiter), 0);
	rig_close(&rig);
}

static int get_pool(void *of, void *out)
{
	return tw_pool_stats(of, out);
}

Test(service_stats_sizes, of_a_pool)
{
	tw_pool *pool;
	struct tw_pool_config config = {.size = sizeof config, .workers = 1};
	expect_eq(tw_pool_create(&pool, &config), 0);
	expect_sizes_are_kept(get_pool, pool, sizeof(struct tw_pool_stats),
			      offsetof(struct tw_pool_stats, services));
	expect_eq(tw_pool_destroy(pool), 0);
}

static int get_strand(void *of, void *out)
{
	return tw_strand_stats(of, out);
}

Test(service_stats_sizes, of_a_strand)
{
	struct rig rig;
	tw_strand *strand;
	rig_open(&rig, NULL);
	expect_eq(tw_strand_create(&strand, rig.service, NULL), 0);
	expect_sizes_are_kept(get_strand, strand, sizeof(struct tw_strand_stats),
			      offsetof(struct tw_strand_stats, delayed));
	expect_eq(tw_strand_destroy(strand), 0);
	rig_close(&rig);
}

struct of_group {
	tw_service *service;
	tw_group group;
};

static int get_group(void *of, void *out)
{
	const struct of_group *g = of;
	return tw_group_stats(g->service, g->group, out);
}

Test(service_stats_sizes, of_a_service_and_of_a_group)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct of_group g = {.service = rig.service};
	expect_eq(tw_group_create(&g.group, rig.service), 0);
	expect_sizes_are_kept(get_group, &g, sizeof(struct tw_group_stats),
			      offsetof(struct tw_group_stats, running));
	struct tw_service_stats newer[2] = {{.size = sizeof newer}};
	memset(&newer[1], MARK, sizeof newer[1]);
	expect_eq(tw_service_stats(rig.service, newer), 0);
	cr_assert(all_are((const unsigned char *)&newer[1], sizeof newer[1], 0));
	expect_eq(tw_group_destroy(rig.service, g.group), 0);
	rig_close(&rig);
}

/* The caller frees it. */
static char *printed(const void *stats)
{
	char *text = NULL;
	size_t size = 0;
	FILE *file = open_memstream(&text, &size);
	int r = tw_service_stats_print(stats, file);
	fclose(file);
	expect_eq(r, 0);
	return text;
}

/* What a program's struct of that size prints is what its members say, and 0 for the others. */
static void expect_printed_within(const struct tw_service_stats *full, size_t size)
{
	struct tw_service_stats known = {0};
	_Alignas(max_align_t) unsigned char bytes[MOST];
	memset(bytes, MARK, sizeof bytes);
	memcpy(bytes, full, size < sizeof *full ? size : sizeof *full);
	memcpy(bytes, &size, sizeof size);
	memcpy(&known, bytes, size < sizeof known ? size : sizeof known);
	known.size = sizeof known;
	char *of_program = printed(bytes), *expected = printed(&known);
	cr_assert(strcmp(of_program, expected) == 0, "size %zu", size);
	free(of_program);
	free(expected);
}

Test(service_stats_sizes, of_what_is_printed)
{
	struct tw_service_stats full;
	for (size_t i = 0; i < sizeof full / sizeof(uint64_t); i++)
		memcpy((uint64_t *)(void *)&full + i, &(uint64_t){1000 + i}, sizeof(uint64_t));
	for (size_t size = sizeof full + TAIL; size >= offsetof(struct tw_service_stats, fired);
	     size--)
		expect_printed_within(&full, size);
	full.size = offsetof(struct tw_service_stats, fired) - 1;
	expect_eq(tw_service_stats_print(&full, stdout), -EINVAL);
}
