/*
 * A binary min-heap for the ready tasks, by key, then by id. An item knows its index, so any is
 * removed in O(log n). The key is in the array: sifting follows a pointer only where two are equal.
 * Sifts move a hole instead of swapping (J. W. J. Williams: Algorithm 232, Heapsort, 1964).
 */
#ifndef TW_EXECUTOR_SCHEDULER_HEAP_H
#define TW_EXECUTOR_SCHEDULER_HEAP_H

#include <stddef.h>
#include <stdint.h>

/* The user sets id; constant while the item is in the heap. */
struct tw__task_heap_item {
	uint64_t id;
	uint32_t index;
};

struct tw__task_heap_node {
	int64_t key;
	struct tw__task_heap_item *item;
};

/* All zero: empty. */
struct tw__task_heap {
	struct tw__task_heap_node
	    *nodes; /* nodes[1], the first pair of children, begins a cache line */
	struct tw__task_heap_node *memory;
	uint32_t count, capacity;
};

/* The first to leave, which stays; NULL: empty. */
static inline struct tw__task_heap_item *tw__task_heap_peek(const struct tw__task_heap *heap)
{
	return heap->count ? heap->nodes[0].item : NULL;
}

/* Makes room for `capacity` items in all: until then no push fails. Returns 0 or -ENOMEM. */
int tw__task_heap_reserve(struct tw__task_heap *heap, uint32_t capacity);

/* There is room. */
void tw__task_heap_push(struct tw__task_heap *heap, struct tw__task_heap_item *item, int64_t key);

/* The item is in the heap. */
void tw__task_heap_remove(struct tw__task_heap *heap, const struct tw__task_heap_item *item);

/* Empties the heap, which stays usable. Items are not changed. */
void tw__task_heap_free(struct tw__task_heap *heap);

#endif
