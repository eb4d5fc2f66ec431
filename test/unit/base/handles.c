/* Nodes, their handles, and their memory. */
#include "executor/base/handles.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "executor/base/object.h"
#include "test/support/expect.h"

struct task {
	struct tw__node node;
	uint64_t value[20];
};

enum { MANY = 300000 };

static struct tw__nodes nodes;
static struct tw__object owner, another;

static void open_nodes(void)
{
	tw__nodes_init(&nodes, sizeof(struct task));
}

static void close_nodes(void)
{
	expect_in_fini();
	tw__nodes_fini(&nodes);
}

TestSuite(base_handles, .init = open_nodes, .fini = close_nodes, .timeout = 60);

static struct tw__node *get(void)
{
	struct tw__node *node = NULL;
	cr_assert_eq(tw__node_get(&nodes, &owner, &node), 0);
	return node;
}

static struct tw__node *find(uint64_t handle)
{
	return tw__node_find(&nodes, &owner, handle);
}

static struct tw__node **get_many(size_t n)
{
	struct tw__node **all = malloc(n * sizeof *all);
	for (size_t i = 0; i < n; i++) {
		all[i] = get();
		((struct task *)all[i])->value[0] = i;
	}
	return all;
}

static void put_many(struct tw__node **all, size_t n)
{
	for (size_t i = 0; i < n; i++)
		tw__node_put(&nodes, all[i]);
}

/* Rows of 8, 16, 32 and so on. */
static const struct tw__slab *slab_at(uint32_t number)
{
	uint32_t row = 0;
	for (; number >= 8u << row; row++)
		number -= 8u << row;
	return &nodes.rows[row][number];
}

static size_t slabs_with_memory(void)
{
	size_t n = 0;
	for (uint32_t i = 0; i < nodes.count; i++)
		n += slab_at(i)->memory != NULL;
	return n;
}

Test(base_handles, handle_finds_its_node_until_it_is_put_and_used_again)
{
	struct tw__node *node = get();
	uint64_t old = tw__node_handle(node);
	cr_assert_neq(old, 0);
	cr_assert_eq(find(old), node);
	cr_assert_null(tw__node_find(&nodes, &another, old));
	tw__node_put(&nodes, node);
	cr_assert_null(find(old));
	cr_assert_null(find(tw__node_handle(node)), "a free node was found");
	cr_assert_eq(get(), node);
	cr_assert_neq(tw__node_handle(node), old);
	cr_assert_null(find(old));
	cr_assert_eq(find(tw__node_handle(node)), node);
}

Test(base_handles, nodes_that_are_put_together_end_and_each_is_used_again_once)
{
	enum { N = 1000 };
	struct tw__node_batch batch = {0};
	uint64_t handles[N];
	struct tw__node **all = get_many(N);
	for (size_t i = 0; i < N; i++) {
		handles[i] = tw__node_handle(all[i]);
		cr_assert_eq(find(handles[i]), all[i]);
		tw__node_put_later(&nodes, &batch, all[i]);
		cr_assert_null(find(handles[i]));
	}
	tw__node_put_batch(&nodes, &batch);
	tw__node_put_batch(&nodes, &batch); /* it is empty */
	uint32_t slabs = nodes.count;
	struct tw__node **again = get_many(N);
	for (size_t i = 0; i < N; i++) {
		cr_assert_eq(((struct task *)again[i])->value[0], i);
		cr_assert_null(find(handles[i]));
	}
	cr_assert_eq(nodes.count, slabs);
	free(all);
	free(again);
}

Test(base_handles, never_more_than_max)
{
	struct tw__node *node;
	nodes.max_count = 2;
	struct tw__node **all = get_many(2 * TW__NODE_SLAB);
	cr_assert_eq(tw__node_get(&nodes, &owner, &node), -EAGAIN);
	tw__node_put(&nodes, all[7]);
	cr_assert_eq(get(), all[7]);
	cr_assert_eq(tw__node_get(&nodes, &owner, &node), -EAGAIN);
	free(all);
}

Test(base_handles, numbers_that_were_never_given_out_find_nothing)
{
	uint64_t handle = tw__node_handle(get());
	const uint64_t wrong[] = {0,
				  5,
				  UINT64_MAX,
				  handle + 1,
				  handle - 1,
				  handle ^ UINT64_C(1) << 40,
				  handle | 0xfffffff0,
				  (handle & ~UINT64_C(0xffffffff)) | TW__NODE_SLAB,
				  (handle & ~UINT64_C(0xffffffff)) | (TW__NODE_SLAB + 1)};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		cr_assert_null(find(wrong[i]), "number %zu", i);
}

Test(base_handles, slab_whose_generations_are_used_up_gives_its_memory_back_and_out_no_node)
{
	struct tw__node *node = get(), *last;
	struct tw__slab *slab = &nodes.rows[0][0];
	slab->generation = UINT32_MAX - 1; /* as after thousands of millions of uses */
	last = get();
	uint64_t handle = tw__node_handle(last);
	cr_assert_eq(find(handle), last);
	cr_assert_eq(get()->index, TW__NODE_SLAB, "of the next slab");
	tw__node_put(&nodes, last);
	cr_assert_null(find(handle));
	tw__node_put(&nodes, node);
	cr_assert_null(slab->memory);
	for (unsigned i = 0; i < 20 * TW__NODE_SLAB; i++)
		cr_assert_geq(get()->index, TW__NODE_SLAB);
	cr_assert_null(find(handle));
}

/* ----------------------------------------------------------------------- memory */

Test(base_handles, memory_goes_back_when_all_are_put_in_either_order)
{
	for (int backwards = 0; backwards < 2; backwards++) {
		struct tw__node **all = get_many(MANY);
		cr_assert_eq(slabs_with_memory(), MANY / TW__NODE_SLAB + 1);
		for (size_t i = 0; i < MANY; i++)
			tw__node_put(&nodes, all[backwards ? MANY - 1 - i : i]);
		cr_assert_eq(slabs_with_memory(), TW__NODE_IDLE_SLABS);
		free(all);
	}
}

Test(base_handles, memory_goes_back_though_some_stay_and_these_are_still_found)
{
	struct tw__node **all = get_many(MANY);
	uint64_t handles[10];
	for (size_t i = 0; i < 10; i++)
		handles[i] = tw__node_handle(all[i * MANY / 10]);
	for (size_t i = 0; i < MANY; i++)
		if (i % (MANY / 10))
			tw__node_put(&nodes, all[i]);
	cr_assert_eq(slabs_with_memory(), TW__NODE_IDLE_SLABS + 10);
	for (size_t i = 0; i < 10; i++) {
		cr_assert_eq(find(handles[i]), all[i * MANY / 10]);
		cr_assert_eq(((struct task *)all[i * MANY / 10])->value[0], i * MANY / 10);
	}
	free(all);
}

Test(base_handles, no_handle_comes_again_over_storms)
{
	enum { STORM = 20000, STORMS = 20, KEPT = 97 };
	static uint64_t old[STORMS][STORM / KEPT + 1];
	for (int storm = 0; storm < STORMS; storm++) {
		struct tw__node **all = get_many(STORM);
		for (size_t i = 0; i < STORM; i += KEPT)
			old[storm][i / KEPT] = tw__node_handle(all[i]);
		for (int before = 0; before < storm; before++)
			for (size_t i = 0; i < STORM; i += KEPT)
				cr_assert_null(find(old[before][i / KEPT]));
		put_many(all, STORM);
		for (size_t i = 0; i < STORM; i += KEPT)
			cr_assert_null(find(old[storm][i / KEPT]));
		free(all);
	}
	cr_assert_eq(nodes.count, STORM / TW__NODE_SLAB + 1, "the same indices again");
}

Test(base_handles, a_few_at_a_time_use_a_few_slabs)
{
	enum { AHEAD = 1000 };
	static struct tw__node *queue[AHEAD];
	for (size_t i = 0; i < 1000000; i++) {
		if (queue[i % AHEAD])
			tw__node_put(&nodes, queue[i % AHEAD]);
		queue[i % AHEAD] = get();
	}
	cr_assert_leq(slabs_with_memory(), AHEAD / TW__NODE_SLAB + 2);
}
