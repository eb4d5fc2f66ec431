/* Nodes, their handles, and their memory. */
#include "executor/base/handles.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "test/support/expect.h"

struct task {
	struct tw__node node;
	uint64_t value[20];
};

enum { MANY = 300000 };

static struct tw__nodes nodes;

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
	cr_assert_eq(tw__node_get(&nodes, &node), 0);
	return node;
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

/* Pages of the table's memory that are there. */
static size_t resident_bytes(void)
{
	static unsigned char pages[1 << 20];
	size_t resident = 0;
	for (unsigned k = 0; k < TW__NODE_EXTENTS && tw_load_relaxed(&nodes.extents[k]); k++) {
		struct tw__extent *extent = tw_load_relaxed(&nodes.extents[k]);
		if (k == 0 || mincore(extent->memory, extent->bytes, pages))
			continue;
		for (size_t page = 0; page < extent->bytes / 4096; page++)
			resident += (pages[page] & 1) * 4096u;
	}
	return resident;
}

Test(base_handles, nodes_that_are_put_in_batches_end_and_are_used_again)
{
	enum { N = 1000 };
	struct tw__node_batch batch = {0};
	uint64_t handles[N];
	struct tw__node **all = get_many(N), **again;
	for (size_t i = 0; i < N; i++) {
		handles[i] = tw__node_handle(all[i]);
		tw__node_put_later(&nodes, &batch, all[i]);
		cr_assert_null(tw__node_find(&nodes, handles[i]));
	}
	tw__node_put_batch(&nodes, &batch);
	tw__node_put_batch(&nodes, &batch); /* it is empty */
	uint32_t slabs = nodes.slabs;
	again = get_many(N);
	for (size_t i = 0; i < N; i++) { /* each is there once */
		cr_assert_eq(((struct task *)again[i])->value[0], i);
		cr_assert_null(tw__node_find(&nodes, handles[i]));
	}
	cr_assert_eq(nodes.slabs, slabs);
	put_many(again, N);
	free(all);
	free(again);
}

Test(base_handles, handle_finds_its_node_until_it_is_put_and_used_again)
{
	struct tw__node *node = get();
	uint64_t old = tw__node_handle(node);
	cr_assert_neq(old, 0);
	cr_assert_eq(tw__node_find(&nodes, old), node);
	tw__node_put(&nodes, node);
	cr_assert_null(tw__node_find(&nodes, old));
	cr_assert_not(tw__node_is(node, old));
	cr_assert_eq(get(), node);
	cr_assert_neq(tw__node_handle(node), old);
	cr_assert_null(tw__node_find(&nodes, old));
	cr_assert_eq(tw__node_find(&nodes, tw__node_handle(node)), node);
}

Test(base_handles, many_are_all_different_and_found)
{
	struct tw__node **all = get_many(5000);
	for (unsigned i = 0; i < 5000; i++) {
		cr_assert_eq(tw__node_find(&nodes, tw__node_handle(all[i])), all[i]);
		cr_assert_eq(((struct task *)all[i])->value[0], i);
	}
	free(all);
}

Test(base_handles, never_more_than_max)
{
	struct tw__node *node;
	nodes.max_slabs = 2;
	struct tw__node **all = get_many(2 * TW__NODE_SLAB);
	cr_assert_eq(tw__node_get(&nodes, &node), -EAGAIN);
	tw__node_put(&nodes, all[7]);
	cr_assert_eq(get(), all[7]);
	cr_assert_eq(tw__node_get(&nodes, &node), -EAGAIN);
	free(all);
}

Test(base_handles, numbers_that_were_never_given_out_find_nothing)
{
	struct tw__node *node = get();
	uint64_t handle = tw__node_handle(node);
	cr_assert_null(tw__node_find(&nodes, 0));
	cr_assert_null(tw__node_find(&nodes, handle + 1));
	cr_assert_null(tw__node_find(&nodes, handle - 1));
	cr_assert_null(tw__node_find(&nodes, handle ^ UINT64_C(1) << 40));
	cr_assert_null(tw__node_find(&nodes, UINT64_MAX));
	cr_assert_null(tw__node_find(&nodes, handle | 0xfffffff0));
	cr_assert_null(tw__node_find(&nodes, 5));
}

Test(base_handles, node_whose_generation_has_come_round_is_retired)
{
	struct tw__node *node = get();
	nodes.first_generation = 100;
	tw_store_relaxed(&node->generation, 98); /* as after four thousand million uses */
	uint64_t last = tw__node_handle(node);
	tw__node_put(&nodes, node);
	cr_assert_null(tw__node_find(&nodes, last));
	nodes.max_slabs = 1;
	for (unsigned i = 1; i < TW__NODE_SLAB; i++)
		cr_assert_neq(get(), node);
	cr_assert_eq(tw_load_relaxed(&nodes.retired), 1);
	cr_assert_eq(tw__node_get(&nodes, &node), -EAGAIN);
}

Test(base_handles, generation_0_is_left_out)
{
	struct tw__node *node = get();
	nodes.first_generation = 100;
	tw_store_relaxed(&node->generation, UINT32_MAX);
	tw__node_put(&nodes, node);
	cr_assert_eq(get(), node);
	cr_assert_eq(tw_load_relaxed(&node->generation), 1);
}

/* ----------------------------------------------------------------------- memory */

Test(base_handles, memory_goes_back_when_all_are_put_in_either_order)
{
	for (int backwards = 0; backwards < 2; backwards++) {
		struct tw__node **all = get_many(MANY);
		cr_assert_geq(resident_bytes(), MANY * sizeof(struct task) * 9 / 10);
		for (size_t i = 0; i < MANY; i++)
			tw__node_put(&nodes, all[backwards ? MANY - 1 - i : i]);
		cr_assert_leq(resident_bytes(), (TW__NODE_IDLE_SLABS + 2) * nodes.slab_bytes);
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
	cr_assert_leq(resident_bytes(), (TW__NODE_IDLE_SLABS + 12) * nodes.slab_bytes);
	for (size_t i = 0; i < 10; i++) {
		cr_assert_eq(tw__node_find(&nodes, handles[i]), all[i * MANY / 10]);
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
				cr_assert_null(tw__node_find(&nodes, old[before][i / KEPT]));
		put_many(all, STORM);
		for (size_t i = 0; i < STORM; i += KEPT)
			cr_assert_null(tw__node_find(&nodes, old[storm][i / KEPT]));
		free(all);
	}
	/* the same memory again */
	cr_assert_leq(nodes.slabs, STORM / TW__NODE_SLAB + TW__NODE_IDLE_SLABS + 2);
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
	cr_assert_leq(nodes.slabs, 2 * (AHEAD / TW__NODE_SLAB + 2));
}
