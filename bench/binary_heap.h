/*
 * A binary heap of timers with indices: the classic, as good as it gets without another arity. The deadline stands
 * in the heap's own array, so that sifting compares neighbours and follows no pointer; each move still writes the moved
 * timer's index. Add, remove and retime are O(log n). No lock, no clock.
 */
#ifndef BENCH_BINARY_HEAP_H
#define BENCH_BINARY_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/subject.h"

#define NOT_IN_HEAP UINT32_MAX

/* Lives with its user. */
struct heap_timer {
	expiry_fn *fn;
	void *arg;
	uint32_t index; /* NOT_IN_HEAP: not pending */
};

struct heap_node {
	uint64_t deadline_ns;
	struct heap_timer *timer;
};

struct binary_heap {
	struct heap_node *nodes;
	uint32_t count;
};

/* Room for `capacity` timers, touched; more may never be added. False: no memory. */
bool binary_heap_init(struct binary_heap *heap, uint32_t capacity);
void binary_heap_free(struct binary_heap *heap);

void binary_heap_add(struct binary_heap *heap, struct heap_timer *timer, uint64_t deadline_ns);
void binary_heap_remove(struct binary_heap *heap, struct heap_timer *timer);
void binary_heap_retime(struct binary_heap *heap, struct heap_timer *timer, uint64_t deadline_ns);

/* UINT64_MAX: empty. */
static inline uint64_t binary_heap_first_ns(const struct binary_heap *heap)
{
	return heap->count ? heap->nodes[0].deadline_ns : UINT64_MAX;
}

#endif
