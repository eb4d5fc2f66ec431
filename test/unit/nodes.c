/* Nodes and their handles. */
#include "executor/base/handles.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

struct task {
	struct tw__node node;
	uint64_t value;
};

static struct tw__nodes nodes;

static void open_nodes(void)
{
	tw__nodes_init(&nodes, sizeof(struct task), 100000);
}

static void close_nodes(void)
{
	tw__nodes_fini(&nodes);
}

TestSuite(nodes, .init = open_nodes, .fini = close_nodes);

static struct tw__node *get(void)
{
	struct tw__node *node = NULL;
	cr_assert_eq(tw__node_get(&nodes, &node), 0);
	return node;
}

Test(nodes, handle_finds_its_node_until_it_is_put)
{
	struct tw__node *node = get();
	uint64_t handle = tw__node_handle(node);
	cr_assert_neq(handle, 0);
	cr_assert_eq(tw__node_find(&nodes, handle), node);
	tw__node_put(&nodes, node);
	cr_assert_null(tw__node_find(&nodes, handle));
	cr_assert_not(tw__node_is(node, handle));
}

Test(nodes, node_is_used_again_under_another_handle)
{
	struct tw__node *node = get();
	uint64_t old = tw__node_handle(node);
	tw__node_put(&nodes, node);
	cr_assert_eq(get(), node);
	cr_assert_neq(tw__node_handle(node), old);
	cr_assert_null(tw__node_find(&nodes, old));
	cr_assert_eq(tw__node_find(&nodes, tw__node_handle(node)), node);
}

Test(nodes, many_are_all_different_and_found)
{
	enum { MANY = 5000 };
	static struct tw__node *all[MANY];
	for (unsigned i = 0; i < MANY; i++) {
		all[i] = get();
		((struct task *)all[i])->value = i;
	}
	for (unsigned i = 0; i < MANY; i++) {
		cr_assert_eq(tw__node_find(&nodes, tw__node_handle(all[i])), all[i]);
		cr_assert_eq(((struct task *)all[i])->value, i);
	}
}

Test(nodes, never_more_than_max)
{
	struct tw__node *node;
	nodes.max = 70;
	struct tw__node *last = NULL;
	for (unsigned i = 0; i < 70; i++)
		last = get();
	cr_assert_eq(tw__node_get(&nodes, &node), -EAGAIN);
	tw__node_put(&nodes, last);
	cr_assert_eq(get(), last);
	cr_assert_eq(tw__node_get(&nodes, &node), -EAGAIN);
}

Test(nodes, numbers_that_were_never_given_out_find_nothing)
{
	struct tw__node *node = get();
	uint64_t handle = tw__node_handle(node);
	cr_assert_null(tw__node_find(&nodes, 0));
	cr_assert_null(tw__node_find(&nodes, handle + 1));
	cr_assert_null(tw__node_find(&nodes, handle - 1));
	cr_assert_null(tw__node_find(&nodes, handle ^ UINT64_C(1) << 40));
	cr_assert_null(tw__node_find(&nodes, UINT64_MAX));
	cr_assert_null(tw__node_find(&nodes, handle | 0xfffffff0));
}

Test(nodes, node_whose_generation_has_come_round_is_retired)
{
	struct tw__node *node = get();
	tw_store_relaxed(&node->generation, nodes.first_generation - 2); /* as after four thousand million uses */
	uint64_t last = tw__node_handle(node);
	tw__node_put(&nodes, node);
	cr_assert_null(tw__node_find(&nodes, last));
	nodes.max = 1; /* of those that are not */
	cr_assert_neq(get(), node);
	cr_assert_eq(tw_load_relaxed(&nodes.retired), 1);
	cr_assert_eq(tw__node_get(&nodes, &node), -EAGAIN);
}
