/*
 * The heap of ready tasks: binary, nodes[1] on top, by expiration, then by number. The key is in
 * the array: sifting follows a pointer only where two are equal. Sifts move a hole instead of
 * swapping (J. W. J. Williams: Algorithm 232, Heapsort, 1964). Calls nothing.
 */
#include "executor/scheduler/internal.h"

#include <string.h>

#include "mpsc/base/reserve.h"

int tw__heap_reserve(struct tw__heap *heap, uint32_t count)
{
	if (count < heap->room)
		return 0;
	uint32_t room = heap->room ? 2 * heap->room : 16;
	/* children, a pair from an even index on, share a cache line */
	struct tw__heap_node *nodes =
	    tw__alloc_aligned(TW__CACHE_LINE, room * sizeof(struct tw__heap_node));
	if (!nodes)
		return -ENOMEM;
	if (heap->count)
		memcpy(nodes + 1, heap->nodes + 1, heap->count * sizeof *nodes);
	tw__free(heap->nodes);
	heap->nodes = nodes;
	heap->room = room;
	return 0;
}

static bool before(struct tw__heap_node a, struct tw__heap_node b)
{
	return a.key == b.key ? a.task->number < b.task->number : a.key < b.key;
}

static void put(struct tw__heap *heap, uint32_t index, struct tw__heap_node node)
{
	TW_ASSERT(index && index <= heap->count);
	heap->nodes[index] = node;
	node.task->index = index; /* planted: heap_index */
}

static void sift_up(struct tw__heap *heap, uint32_t hole, struct tw__heap_node node)
{
	for (; hole > 1 && before(node, heap->nodes[hole / 2]); hole /= 2)
		put(heap, hole, heap->nodes[hole / 2]);
	put(heap, hole, node);
}

void tw__heap_push(struct tw__heap *heap, struct tw__task *task)
{
	TW_ASSERT(heap->count + 1 < heap->room);
	sift_up(heap, ++heap->count, (struct tw__heap_node){task->expiration_ns, task});
}

void tw__heap_remove(struct tw__heap *heap, const struct tw__task *task)
{
	uint32_t hole = task->index;
	TW_ASSERT(hole && hole <= heap->count && heap->nodes[hole].task == task);
	struct tw__heap_node last = heap->nodes[heap->count--];
	if (hole > heap->count)
		return;
	for (uint32_t child; (child = 2 * hole) <= heap->count; hole = child) {
		/* added, not branched upon: that would be mispredicted half the time */
		if (child < heap->count)
			child += before(heap->nodes[child + 1], heap->nodes[child]);
		if (!before(heap->nodes[child], last))
			break;
		put(heap, hole, heap->nodes[child]);
	}
	if (hole == task->index) /* it has not gone down: it may go up */
		sift_up(heap, hole, last);
	else
		put(heap, hole, last);
}
