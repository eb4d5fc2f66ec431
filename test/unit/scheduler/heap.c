/* The heap of ready tasks. */
#include "executor/scheduler/heap.h"

#include <errno.h>

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

/* ---------------------------------------------------------------- random steps */

static int64_t keys_of[MANY];

static bool is_before(unsigned a, unsigned b)
{
	return keys_of[a] < keys_of[b] || (keys_of[a] == keys_of[b] && a < b);
}

static void check(unsigned count)
{
	cr_assert_eq(heap.count, count);
	for (uint32_t i = 0; i < count; i++)
		cr_assert_eq(heap.nodes[i].item->index, i);
	if (!count)
		return;
	unsigned first = (unsigned)(tw__task_heap_peek(&heap) - items);
	cr_assert(inside[first]);
	for (unsigned i = 0; i < MANY; i++)
		cr_assert(!inside[i] || !is_before(i, first));
}

/* Returns by how much the heap has grown. */
static int one_step(uint64_t *seed)
{
	unsigned item = (unsigned)random_below(seed, MANY);
	int64_t key = (int64_t)random_below(seed, 40) - 20;
	if (!inside[item] && random_percent(seed, 60)) {
		cr_assert_eq(try_push(item, key), 0);
		keys_of[item] = key;
		inside[item] = true;
		return 1;
	}
	if (!heap.count)
		return 0;
	if (!inside[item])
		item = (unsigned)(tw__task_heap_peek(&heap) - items);
	tw__task_heap_remove(&heap, &items[item]);
	inside[item] = false;
	return -1;
}

Test(scheduler_heap, first_is_the_least_after_any_steps)
{
	int count = 0;
	uint64_t seed = 1;
	for (unsigned step = 0; step < 40000; step++) {
		count += one_step(&seed);
		check((unsigned)count);
	}
}
