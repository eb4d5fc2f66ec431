/*
 * A heap of timers with indices, of any arity: the classic, as good as it gets. The deadline stands in the heap's own
 * array, so that sifting compares neighbours and follows no pointer; the children of a node begin at a multiple of
 * their number, so that four of them fill one cache line. Sifts move a hole instead of swapping: one write of a node
 * and of an index per level. Add, remove and retime are O(log n), and inline: this rival pays for no call, and the
 * arity is a constant where they are used. No lock, no clock.
 */
#ifndef BENCH_HEAP_H
#define BENCH_HEAP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "bench/subject.h"

#define NOT_IN_HEAP UINT32_MAX

/* Lives with its user. */
struct heap_timer {
	expiry_fn *fn;
	void *arg;
	uint32_t index;     /* NOT_IN_HEAP: not pending */
	uint32_t period_ms; /* 0: runs once */
};

struct heap_node {
	uint64_t deadline_ns;
	struct heap_timer *timer;
};

struct heap {
	struct heap_node *memory, *nodes; /* nodes[1] begins a cache line */
	uint32_t count;
};

/* Room for `capacity` timers, touched; more may never be added. False: no memory. */
static inline bool heap_init(struct heap *heap, uint32_t capacity, unsigned arity)
{
	heap->count = 0;
	heap->memory = touched_array((size_t)capacity + arity - 1, sizeof *heap->memory);
	heap->nodes = heap->memory ? heap->memory + arity - 1 : NULL;
	return heap->memory != NULL;
}

static inline void heap_free(struct heap *heap)
{
	free(heap->memory);
}

/* UINT64_MAX: empty. */
static inline uint64_t heap_first_ns(const struct heap *heap)
{
	return heap->count ? heap->nodes[0].deadline_ns : UINT64_MAX;
}

static inline void heap_put(struct heap *heap, uint32_t index, struct heap_node node)
{
	heap->nodes[index] = node;
	node.timer->index = index;
}

static inline void heap_sift_up(struct heap *heap, uint32_t hole, struct heap_node node, unsigned arity)
{
	while (hole > 0) {
		uint32_t parent = (hole - 1) / arity;
		if (heap->nodes[parent].deadline_ns <= node.deadline_ns)
			break;
		heap_put(heap, hole, heap->nodes[parent]);
		hole = parent;
	}
	heap_put(heap, hole, node);
}

/* Of the children that begin at `first`. */
static inline uint32_t heap_earliest_child(const struct heap *heap, uint32_t first, unsigned arity)
{
	uint32_t earliest = first, end = heap->count - first < arity ? heap->count : first + arity;
	uint64_t deadline_ns = heap->nodes[first].deadline_ns;
	for (uint32_t child = first + 1; child < end; child++) {
		bool earlier = heap->nodes[child].deadline_ns < deadline_ns;
		deadline_ns = earlier ? heap->nodes[child].deadline_ns : deadline_ns;
		earliest = earlier ? child : earliest;
	}
	return earliest;
}

static inline void heap_sift_down(struct heap *heap, uint32_t hole, struct heap_node node, unsigned arity)
{
	for (uint32_t first; (first = arity * hole + 1) < heap->count;) {
		uint32_t child = heap_earliest_child(heap, first, arity);
		if (node.deadline_ns <= heap->nodes[child].deadline_ns)
			break;
		heap_put(heap, hole, heap->nodes[child]);
		hole = child;
	}
	heap_put(heap, hole, node);
}

static inline void heap_settle(struct heap *heap, uint32_t hole, struct heap_node node, unsigned arity)
{
	if (hole > 0 && node.deadline_ns < heap->nodes[(hole - 1) / arity].deadline_ns)
		heap_sift_up(heap, hole, node, arity);
	else
		heap_sift_down(heap, hole, node, arity);
}

static inline void heap_add(struct heap *heap, struct heap_timer *timer, uint64_t deadline_ns, unsigned arity)
{
	struct heap_node node = {.deadline_ns = deadline_ns, .timer = timer};
	heap_sift_up(heap, heap->count++, node, arity);
}

static inline void heap_remove(struct heap *heap, struct heap_timer *timer, unsigned arity)
{
	uint32_t hole = timer->index;
	timer->index = NOT_IN_HEAP;
	struct heap_node last = heap->nodes[--heap->count];
	if (hole != heap->count)
		heap_settle(heap, hole, last, arity);
}

static inline void heap_retime(struct heap *heap, struct heap_timer *timer, uint64_t deadline_ns, unsigned arity)
{
	struct heap_node node = {.deadline_ns = deadline_ns, .timer = timer};
	heap_settle(heap, timer->index, node, arity);
}

/* The first one has come due: it leaves, or takes its next place, a period after the last by its nominal time. */
static inline struct heap_timer *heap_take(struct heap *heap, unsigned arity)
{
	struct heap_node first = heap->nodes[0];
	if (first.timer->period_ms)
		heap_retime(heap, first.timer, first.deadline_ns + first.timer->period_ms * UINT64_C(1000000), arity);
	else
		heap_remove(heap, first.timer, arity);
	return first.timer;
}

#endif
