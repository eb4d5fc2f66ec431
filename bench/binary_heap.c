/* Sifts move a hole instead of swapping: one write of a node and of an index per level. */
#include <stdlib.h>

#include "bench/binary_heap.h"

bool binary_heap_init(struct binary_heap *heap, uint32_t capacity)
{
	*heap = (struct binary_heap){.nodes = touched_array(capacity, sizeof(struct heap_node))};
	return heap->nodes != NULL;
}

void binary_heap_free(struct binary_heap *heap)
{
	free(heap->nodes);
}

static inline void put(struct binary_heap *heap, uint32_t index, struct heap_node node)
{
	heap->nodes[index] = node;
	node.timer->index = index;
}

static void sift_up(struct binary_heap *heap, uint32_t hole, struct heap_node node)
{
	while (hole > 0) {
		uint32_t parent = (hole - 1) / 2;
		if (heap->nodes[parent].deadline_ns <= node.deadline_ns)
			break;
		put(heap, hole, heap->nodes[parent]);
		hole = parent;
	}
	put(heap, hole, node);
}

static void sift_down(struct binary_heap *heap, uint32_t hole, struct heap_node node)
{
	for (uint32_t child; (child = 2 * hole + 1) < heap->count; hole = child) {
		if (child + 1 < heap->count)
			child += heap->nodes[child + 1].deadline_ns < heap->nodes[child].deadline_ns;
		if (node.deadline_ns <= heap->nodes[child].deadline_ns)
			break;
		put(heap, hole, heap->nodes[child]);
	}
	put(heap, hole, node);
}

static void settle(struct binary_heap *heap, uint32_t hole, struct heap_node node)
{
	if (hole > 0 && node.deadline_ns < heap->nodes[(hole - 1) / 2].deadline_ns)
		sift_up(heap, hole, node);
	else
		sift_down(heap, hole, node);
}

void binary_heap_add(struct binary_heap *heap, struct heap_timer *timer, uint64_t deadline_ns)
{
	sift_up(heap, heap->count++, (struct heap_node){.deadline_ns = deadline_ns, .timer = timer});
}

void binary_heap_remove(struct binary_heap *heap, struct heap_timer *timer)
{
	uint32_t hole = timer->index;
	timer->index = NOT_IN_HEAP;
	struct heap_node last = heap->nodes[--heap->count];
	if (hole != heap->count)
		settle(heap, hole, last);
}

void binary_heap_retime(struct binary_heap *heap, struct heap_timer *timer, uint64_t deadline_ns)
{
	settle(heap, timer->index, (struct heap_node){.deadline_ns = deadline_ns, .timer = timer});
}
