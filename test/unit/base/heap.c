/* The heap, against a sorted array. */
#include "executor/base/heap.h"

#include <errno.h>
#include <string.h>

#include "test/support/expect.h"
#include "test/support/faults.h"
#include "test/support/random.h"

enum { MANY = 300 };

static struct tw__heap heap;
static struct tw__heap_item items[MANY];

static void open_heap(void)
{
	for (unsigned i = 0; i < MANY; i++)
		tw__heap_item_init(&items[i], i + 1);
}

static void close_heap(void)
{
	expect_in_fini();
	tw__heap_free(&heap);
}

TestSuite(base_heap, .init = open_heap, .fini = close_heap);

static int try_push(unsigned i, int64_t key)
{
	int r = tw__heap_reserve(&heap, heap.count + 1);
	if (!r)
		tw__heap_push_reserved(&heap, &items[i], key);
	return r;
}

static void push(unsigned i, int64_t key)
{
	cr_assert_eq(try_push(i, key), 0);
}

static int64_t key_of(const struct tw__heap_item *item)
{
	return heap.nodes[item->entry.index].key;
}

Test(base_heap, empty_answers_null)
{
	cr_assert_null(tw__heap_peek(&heap));
	cr_assert_null(tw__heap_pop(&heap));
	push(0, 5);
	cr_assert_eq(tw__heap_pop(&heap), &items[0]);
	cr_assert_null(tw__heap_peek(&heap));
	cr_assert_null(tw__heap_pop(&heap));
}

Test(base_heap, signed_keys_leave_in_order)
{
	const int64_t keys[] = {7, -1, INT64_MAX, 0, INT64_MIN, 3};
	const unsigned order[] = {4, 1, 3, 5, 0, 2};
	for (unsigned i = 0; i < 6; i++)
		push(i, keys[i]);
	for (unsigned i = 0; i < 6; i++)
		cr_assert_eq(tw__heap_pop(&heap), &items[order[i]]);
}

Test(base_heap, items_know_whether_they_are_in_it_and_by_which_key)
{
	cr_assert_not(tw__heap_has(&items[0]));
	push(0, 9);
	push(1, -4);
	cr_assert(tw__heap_has(&items[0]));
	cr_assert_eq(key_of(&items[0]), 9);
	cr_assert_eq(key_of(&items[1]), -4);
	tw__heap_remove(&heap, &items[0]);
	cr_assert_not(tw__heap_has(&items[0]));
	cr_assert_eq(tw__heap_pop(&heap), &items[1]);
	cr_assert_not(tw__heap_has(&items[1]));
}

Test(base_heap, push_without_memory_changes_nothing)
{
	push(0, 1);
	faults_arm(0, true);
	int r = 0;
	unsigned i = 1;
	while (i < MANY && !(r = try_push((unsigned)i, i)))
		i++;
	faults_disarm();
	cr_assert_eq(r, -ENOMEM);
	cr_assert_not(tw__heap_has(&items[i]));
	cr_assert_eq(heap.count, i);
	for (unsigned k = 0; k < i; k++)
		cr_assert_eq(tw__heap_pop(&heap), &items[k]);
}

Test(base_heap, push_into_reserved_room_needs_no_memory)
{
	push(0, 1);
	cr_assert_eq(tw__heap_reserve(&heap, MANY), 0);
	faults_arm(0, true);
	for (unsigned i = 1; i < MANY; i++)
		push((unsigned)i, i);
	faults_disarm();
	cr_assert_eq(heap.count, (unsigned)MANY);
}

Test(base_heap, too_much_room_is_refused)
{
	cr_assert_eq(tw__heap_reserve(&heap, UINT32_MAX), -ENOMEM);
	cr_assert_eq(heap.capacity, 0);
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

static void check(const struct model *model, unsigned shape)
{
	cr_assert_eq(heap.count, model->count);
	for (uint32_t i = 0; i < heap.count; i++) {
		cr_assert_eq(heap.nodes[i].entry->index, i);
		cr_assert(i == 0 ||
			  !tw__heap_before(heap.nodes[i],
					   heap.nodes[(i - 1) / TW__HEAP_ARITY(shape)], shape));
	}
	if (model->count)
		cr_assert_eq(tw__heap_peek(&heap), &items[model->sorted[0].item]);
}

static void one_step(struct model *model, uint64_t *seed, unsigned shape)
{
	unsigned item = (unsigned)random_below(seed, MANY), what = (unsigned)random_below(seed, 10);
	int64_t key = (int64_t)random_below(seed, 40) - 20;
	if (!tw__heap_has(&items[item])) {
		cr_assert_eq(tw__heap_reserve_as(&heap, heap.count + 1, shape), 0);
		tw__heap_push_reserved_as(&heap, &items[item].entry, key, shape);
		model_add(model, item, key);
	} else if (what < 3) {
		tw__heap_remove_as(&heap, &items[item].entry, shape);
		model_remove(model, item);
	} else if (what < 7) {
		tw__heap_rekey_as(&heap, &items[item].entry, key, shape);
		model_remove(model, item);
		model_add(model, item, key);
	} else {
		item = model->sorted[0].item;
		cr_assert_eq(tw__heap_peek(&heap), &items[item]);
		tw__heap_remove_as(&heap, &items[item].entry, shape);
		model_remove(model, item);
	}
}

static void against_the_model(unsigned shape)
{
	for (uint64_t first = 1; first <= 20; first++) {
		uint64_t seed = first;
		struct model model = {.count = 0};
		for (unsigned step = 0; step < 2000; step++) {
			one_step(&model, &seed, shape);
			check(&model, shape);
		}
		while (model.count) {
			unsigned item = model.sorted[0].item;
			tw__heap_remove_as(&heap, &tw__heap_peek(&heap)->entry, shape);
			cr_assert_not(tw__heap_has(&items[item]), "seed %llu",
				      (unsigned long long)first);
			model_remove(&model, item);
		}
	}
}

Test(base_heap, of_either_arity_does_what_a_sorted_array_does)
{
	against_the_model(TW__HEAP_USUAL);
	against_the_model(TW__HEAP_SHAPE(4, true));
}

static bool is_odd(struct tw__heap_item *item, void *asked)
{
	++*(unsigned *)asked;
	cr_assert_not(tw__heap_has(item));
	return item->id % 2;
}

Test(base_heap, sweep_keeps_the_order_of_the_rest)
{
	uint64_t seed = 3;
	unsigned asked = 0;
	for (unsigned i = 0; i < MANY; i++)
		push(i, (int64_t)random_below(&seed, 50));
	tw__heap_sweep(&heap, is_odd, &asked);
	cr_assert_eq(asked, (unsigned)MANY);
	cr_assert_eq(heap.count, MANY / 2u);
	int64_t last_key = -1;
	uint64_t last_id = 0;
	while (heap.count) {
		struct tw__heap_item *item = tw__heap_peek(&heap);
		int64_t key = key_of(item);
		cr_assert(item->id % 2 &&
			  (last_key < key || (last_key == key && last_id < item->id)));
		last_key = key, last_id = item->id;
		tw__heap_pop(&heap);
	}
	for (unsigned i = 0; i < MANY; i++)
		cr_assert_not(tw__heap_has(&items[i]));
}

/* ---------------------------------------------------------------------- loose */

/* The one that is to leave next, by looking at all. */
static unsigned first_of(const int64_t *keys)
{
	unsigned first = MANY;
	for (unsigned i = 0; i < MANY; i++)
		if (tw__heap_has(&items[i]) && (first == MANY || keys[i] < keys[first]))
			first = i; /* ids ascend with i */
	return first;
}

Test(base_heap, loose_one_leaves_in_the_same_order_and_knows_who_is_in_it)
{
	int64_t keys[MANY];
	cr_assert_eq(tw__heap_reserve(&heap, MANY), 0);
	cr_assert_null(tw__heap_pop_loose(&heap));
	for (uint64_t seed = 1, steps = 0; steps < 20000; steps++) {
		unsigned i = (unsigned)random_below(&seed, MANY), asked = 0;
		bool grows = steps / 1000 % 2 == 0;
		if (steps % 997 == 0) {
			tw__heap_sweep(&heap, is_odd, &asked);
			for (unsigned j = 1; j < MANY; j += 2) /* ids are even there */
				cr_assert_not(tw__heap_has(&items[j]));
		} else if (!tw__heap_has(&items[i]) && random_below(&seed, 4) < (grows ? 4 : 1)) {
			tw__heap_push_loose(&heap, &items[i],
					    keys[i] = (int64_t)random_below(&seed, 40) - 20);
		} else if (heap.count) {
			unsigned first = first_of(keys);
			cr_assert_eq(tw__heap_first_key(&heap), keys[first]);
			cr_assert_eq(tw__heap_pop_loose(&heap), &items[first]);
			cr_assert_not(tw__heap_has(&items[first]));
		}
	}
}
