#include "executor/scheduler/heap.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "mpsc/base/reserve.h"
#include "mpsc/base/assert.h"
#include "mpsc/base/atomics.h"

enum { FIRST_CAPACITY = 15, MOST = 1 << 30 };

/* By hand instead of realloc, which would not keep the alignment to a cache line. */
int tw__task_heap_reserve(struct tw__task_heap *heap, uint32_t capacity)
{
	if (capacity <= heap->capacity)
		return 0;
	if (capacity > MOST)
		return -ENOMEM;
	uint32_t twice = heap->capacity ? 2 * heap->capacity + 1 : FIRST_CAPACITY;
	if (capacity < twice)
		capacity = twice; /* so that n pushes copy fewer than 2 n nodes */
	size_t bytes = ((size_t)capacity + 1) * sizeof *heap->nodes;
	struct tw__task_heap_node *memory = tw__alloc_aligned(
	    TW__CACHE_LINE, (bytes + TW__CACHE_LINE - 1) / TW__CACHE_LINE * TW__CACHE_LINE);
	if (!memory)
		return -ENOMEM;
	if (heap->count)
		memcpy(memory + 1, heap->nodes, heap->count * sizeof *heap->nodes);
	tw__free(heap->memory);
	heap->memory = memory;
	heap->nodes = memory + 1;
	heap->capacity = capacity;
	return 0;
}

static bool before(struct tw__task_heap_node a, struct tw__task_heap_node b)
{
	return a.key == b.key ? a.item->id < b.item->id : a.key < b.key;
}

static void put(struct tw__task_heap *heap, uint32_t index, struct tw__task_heap_node node)
{
	TW_ASSERT(index < heap->count);
	heap->nodes[index] = node;
	node.item->index = index; /* planted: heap_index */
}

static void sift_up(struct tw__task_heap *heap, uint32_t hole, struct tw__task_heap_node node)
{
	for (; hole > 0 && before(node, heap->nodes[(hole - 1) / 2]); hole = (hole - 1) / 2)
		put(heap, hole, heap->nodes[(hole - 1) / 2]);
	put(heap, hole, node);
}

static void sift_down(struct tw__task_heap *heap, uint32_t hole, struct tw__task_heap_node node)
{
	for (uint32_t child; (child = 2 * hole + 1) < heap->count; hole = child) {
		/* added, not branched upon: that would be mispredicted half the time */
		if (child + 1 < heap->count)
			child += before(heap->nodes[child + 1], heap->nodes[child]);
		if (!before(heap->nodes[child], node))
			break;
		put(heap, hole, heap->nodes[child]);
	}
	put(heap, hole, node);
}

void tw__task_heap_push(struct tw__task_heap *heap, struct tw__task_heap_item *item, int64_t key)
{
	TW_ASSERT(heap->count < heap->capacity);
	sift_up(heap, heap->count++, (struct tw__task_heap_node){key, item});
}

void tw__task_heap_remove(struct tw__task_heap *heap, const struct tw__task_heap_item *item)
{
	TW_ASSERT(item->index < heap->count && heap->nodes[item->index].item == item);
	uint32_t hole = item->index;
	struct tw__task_heap_node last = heap->nodes[--heap->count];
	if (hole == heap->count)
		return;
	if (hole > 0 && before(last, heap->nodes[(hole - 1) / 2]))
		sift_up(heap, hole, last);
	else
		sift_down(heap, hole, last);
}

void tw__task_heap_free(struct tw__task_heap *heap)
{
	tw__free(heap->memory);
	*heap = (struct tw__task_heap){0};
}
