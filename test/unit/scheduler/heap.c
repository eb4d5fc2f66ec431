/* The heap of ready tasks, against a sorted array. */
#include "executor/scheduler/heap.h"

#include <errno.h>
#include <string.h>

#include "test/support/expect.h"
#include "test/support/faults.h"
#include "test/support/random.h"

enum { MANY = 300 };

static struct tw__task_heap heap;
static struct tw__task_heap_item items[MANY];
static bool inside[MANY];

static void open_heap(void)
{
	for (unsigned i = 0; i < MANY; i++)
		items[i].id = i + 1;
}

static void close_heap(void)
{
	expect_in_fini();
	tw__task_heap_free(&heap);
}

TestSuite(scheduler_heap, .init = open_heap, .fini = close_heap);

static int try_push(unsigned i, int64_t key)
{
	int r = tw__task_heap_reserve(&heap, heap.count + 1);
	if (!r)
		tw__task_heap_push(&heap, &items[i], key);
	return r;
}

/* Expects that the items leave in this order. */
static void expect_pops(const unsigned *order, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct tw__task_heap_item *first = tw__task_heap_peek(&heap);
		cr_assert_eq(first, &items[order ? order[i] : i]);
		tw__task_heap_remove(&heap, first);
	}
	cr_assert_null(tw__task_heap_peek(&heap));
}

Test(scheduler_heap, signed_keys_leave_in_order)
{
	const int64_t keys[] = {7, -1, INT64_MAX, 0, INT64_MIN, 3};
	const unsigned order[] = {4, 1, 3, 5, 0, 2};
	cr_assert_null(tw__task_heap_peek(&heap));
	for (unsigned i = 0; i < 6; i++)
		cr_assert_eq(try_push(i, keys[i]), 0);
	expect_pops(order, 6);
}

Test(scheduler_heap, push_without_memory_changes_nothing)
{
	unsigned i = 1;
	int r = try_push(0, 0);
	faults_arm(0, true);
	while (i < MANY && !(r = try_push(i, i)))
		i++;
	faults_disarm();
	cr_assert_eq(r, -ENOMEM);
	cr_assert_eq(heap.count, i);
	expect_pops(NULL, i);
	cr_assert_eq(tw__task_heap_reserve(&heap, UINT32_MAX), -ENOMEM);
}

Test(scheduler_heap, push_into_reserved_room_needs_no_memory)
{
	cr_assert_eq(tw__task_heap_reserve(&heap, MANY), 0);
	faults_arm(0, true);
	for (unsigned i = 0; i < MANY; i++)
		cr_assert_eq(try_push(i, 0), 0); /* equals: by their ids */
	faults_disarm();
	expect_pops(NULL, MANY);
}

/* ------------------------------------------------------------- against a model */

struct model {
	struct {
		int64_t key;
		unsigned item;
	} sorted[MANY];
	unsigned count;
};

static void model_add(struct model *model, unsigned item, int64_t key)
{
	unsigned at = model->count++;
	for (; at > 0; at--) {
		if (model->sorted[at - 1].key < key ||
		    (model->sorted[at - 1].key == key && model->sorted[at - 1].item < item))
			break;
		model->sorted[at] = model->sorted[at - 1];
	}
	model->sorted[at].key = key;
	model->sorted[at].item = item;
}

static void model_remove(struct model *model, unsigned item)
{
	unsigned at = 0;
	while (model->sorted[at].item != item)
		at++;
	memmove(&model->sorted[at], &model->sorted[at + 1],
		(--model->count - at) * sizeof model->sorted[0]);
}

static void check(const struct model *model)
{
	cr_assert_eq(heap.count, model->count);
	for (uint32_t i = 0; i < heap.count; i++) {
		const struct tw__task_heap_node *node = &heap.nodes[i], *above;
		cr_assert_eq(node->item->index, i);
		above = &heap.nodes[i ? (i - 1) / 2 : 0];
		cr_assert(i == 0 || above->key < node->key ||
			  (above->key == node->key && above->item->id < node->item->id));
	}
	if (model->count)
		cr_assert_eq(tw__task_heap_peek(&heap), &items[model->sorted[0].item]);
}

static void one_step(struct model *model, uint64_t *seed)
{
	unsigned item = (unsigned)random_below(seed, MANY);
	int64_t key = (int64_t)random_below(seed, 40) - 20;
	if (!inside[item] && random_percent(seed, 60)) {
		cr_assert_eq(try_push(item, key), 0);
		model_add(model, item, key);
		inside[item] = true;
		return;
	}
	if (!model->count)
		return;
	if (!inside[item])
		item = model->sorted[0].item;
	tw__task_heap_remove(&heap, &items[item]);
	model_remove(model, item);
	inside[item] = false;
}

Test(scheduler_heap, does_what_a_sorted_array_does)
{
	struct model model = {.count = 0};
	uint64_t seed = 1;
	for (unsigned step = 0; step < 40000; step++) {
		one_step(&model, &seed);
		check(&model);
	}
}
