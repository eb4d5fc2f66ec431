#include "executor/base/heap.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { CACHE_LINE = 64, FIRST_CAPACITY = 15 };

/* By hand instead of realloc, which would not keep the alignment to a cache line. */
int tw__heap_reserve_as(struct tw__heap *heap, uint32_t capacity, unsigned shape)
{
	if (capacity <= heap->capacity)
		return 0;
	if (capacity > TW__HEAP_MAX)
		return -ENOMEM;
	uint32_t twice = heap->capacity ? 2 * heap->capacity + 1 : FIRST_CAPACITY;
	if (capacity < twice)
		capacity = twice; /* so that n pushes copy fewer than 2 n nodes */
	size_t bytes = ((size_t)capacity + TW__HEAP_ARITY(shape) - 1) * sizeof *heap->nodes;
	struct tw__heap_node *memory =
	    aligned_alloc(CACHE_LINE, (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);
	if (!memory)
		return -ENOMEM;
	if (heap->count)
		memcpy(memory + TW__HEAP_ARITY(shape) - 1, heap->nodes,
		       heap->count * sizeof *heap->nodes);
	free(heap->memory);
	heap->memory = memory;
	heap->nodes = memory + TW__HEAP_ARITY(shape) - 1;
	heap->capacity = capacity;
	return 0;
}

void tw__heap_free(struct tw__heap *heap)
{
	free(heap->memory);
	*heap = (struct tw__heap){0};
}

void tw__heap_give_back(struct tw__heap *heap, uint32_t from, uint32_t to)
{
	TW_ASSERT(from >= heap->count);
	enum { PAGE = 4096 }; /* larger pages: madvise refuses, and the memory stays */
	uintptr_t begin = ((uintptr_t)(heap->nodes + from) + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
	uintptr_t end = (uintptr_t)(heap->nodes + (to < heap->capacity ? to : heap->capacity)) &
			~(uintptr_t)(PAGE - 1);
	if (begin < end)
		madvise((void *)begin, end - begin, MADV_DONTNEED);
}

void tw__heap_sweep(struct tw__heap *heap, bool keep(struct tw__heap_item *item, void *arg),
		    void *arg)
{
	uint32_t kept = 0;
	for (uint32_t index = 0; index < heap->count; index++) {
		struct tw__heap_node node = heap->nodes[index];
		node.entry->index = TW__HEAP_NOWHERE;
		if (keep((struct tw__heap_item *)(void *)node.entry, arg))
			/* a loose heap: any place */
			tw__heap_put(heap, kept++, node, TW__HEAP_USUAL);
	}
	heap->count = kept;
	/*
	 * From the last parent upwards, each node sifts down over heaps that are in order already
	 * (R. W. Floyd: Algorithm 245, Treesort 3, 1964).
	 */
	for (uint32_t index = heap->count / 2; index-- > 0;)
		tw__heap_sift_down(heap, index, heap->nodes[index], TW__HEAP_USUAL);
}
