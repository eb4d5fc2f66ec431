/*
 * A binary heap of timers with indices, the classic timer structure (Williams: Algorithm 232,
 * 1964): the first by deadline, equals in any order. Add, remove and retime are O(log n), and
 * inline, so that this rival pays for no call; sifts move a hole instead of swapping, and compare
 * deadlines in the heap's own array. No lock, no clock.
 */
#ifndef BENCH_HEAP_H
#define BENCH_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/candidate.h"

#define HEAP_NOWHERE UINT32_MAX

/* Lives with its user. */
struct heap_timer {
	uint32_t index;     /* HEAP_NOWHERE: not pending */
	uint32_t period_ms; /* 0: runs once */
	expiry_fn *fn;
	void *arg;
};

struct heap {
	uint32_t count;
	struct heap_node {
		uint64_t deadline_ns;
		struct heap_timer *timer;
	} * nodes; /* room for all that are ever added */
};

/* UINT64_MAX: empty. */
static inline uint64_t heap_first_ns(const struct heap *heap)
{
	return heap->count ? heap->nodes[0].deadline_ns : UINT64_MAX;
}

static inline bool heap_has(const struct heap_timer *timer)
{
	return timer->index != HEAP_NOWHERE;
}

static inline void heap_put(struct heap *heap, uint32_t at, struct heap_node node)
{
	heap->nodes[at] = node;
	node.timer->index = at;
}

/* Puts the node where it belongs, beginning with the hole `at`: up, else down. */
static inline void heap_sift(struct heap *heap, uint32_t at, struct heap_node node)
{
	uint32_t start = at;
	while (at > 0 && node.deadline_ns < heap->nodes[(at - 1) / 2].deadline_ns) {
		heap_put(heap, at, heap->nodes[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	while (at == start && 2 * at + 1 < heap->count) {
		uint32_t child = 2 * at + 1;
		if (child + 1 < heap->count)
			child +=
			    heap->nodes[child + 1].deadline_ns < heap->nodes[child].deadline_ns;
		if (node.deadline_ns <= heap->nodes[child].deadline_ns)
			break;
		heap_put(heap, at, heap->nodes[child]);
		at = start = child;
	}
	heap_put(heap, at, node);
}

static inline void heap_add(struct heap *heap, struct heap_timer *timer, uint64_t deadline_ns)
{
	heap_sift(heap, heap->count++, (struct heap_node){deadline_ns, timer});
}

static inline void heap_remove(struct heap *heap, struct heap_timer *timer)
{
	struct heap_node last = heap->nodes[--heap->count];
	if (last.timer != timer)
		heap_sift(heap, timer->index, last);
	timer->index = HEAP_NOWHERE;
}

static inline void heap_retime(struct heap *heap, struct heap_timer *timer, uint64_t deadline_ns)
{
	heap_sift(heap, timer->index, (struct heap_node){deadline_ns, timer});
}

/* The first one has come due: it leaves, or moves on by a period from its nominal time. */
static inline struct heap_timer *heap_take(struct heap *heap)
{
	struct heap_timer *timer = heap->nodes[0].timer;
	if (timer->period_ms)
		heap_retime(heap, timer, heap_first_ns(heap) + timer->period_ms * TICK_NS);
	else
		heap_remove(heap, timer);
	return timer;
}

/* Memory for the timers of all slots, none pending. False: there is none. */
static inline bool heap_init(struct heap *heap, struct heap_timer **timers, uint32_t slots)
{
	heap->nodes = touched_array(slots, sizeof *heap->nodes);
	*timers = touched_array(slots, sizeof **timers);
	for (uint32_t slot = 0; *timers && slot < slots; slot++)
		(*timers)[slot].index = HEAP_NOWHERE;
	return heap->nodes && *timers;
}

#endif
