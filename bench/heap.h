/*
 * A heap of timers with indices, of any arity: the tree's own heap (executor/base/heap.h), which
 * schedulers run on, as the classic timer has it: the first by deadline, equals in any order. Add,
 * remove and retime are O(log n), and inline: this rival pays for no call, and the arity is a
 * constant where they are used. No lock, no clock.
 */
#ifndef BENCH_HEAP_H
#define BENCH_HEAP_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "bench/candidate.h"
#include "executor/base/heap.h"

/* Lives with its user. */
struct heap_timer {
	struct tw__heap_entry entry; /* spare: the period in ms; 0: runs once */
	expiry_fn *fn;
	void *arg;
};

static inline unsigned heap_shape(unsigned arity)
{
	return TW__HEAP_SHAPE(arity, false);
}

/* Room for `capacity` timers, touched; more may never be added. False: no memory. */
static inline bool heap_init(struct tw__heap *heap, uint32_t capacity, unsigned arity)
{
	if (tw__heap_reserve_as(heap, capacity, heap_shape(arity)))
		return false;
	memset(heap->nodes, 0, heap->capacity * sizeof *heap->nodes);
	return true;
}

/* UINT64_MAX: empty. */
static inline uint64_t heap_first_ns(const struct tw__heap *heap)
{
	return heap->count ? (uint64_t)heap->nodes[0].key : UINT64_MAX;
}

static inline bool heap_has(const struct heap_timer *timer)
{
	return timer->entry.index != TW__HEAP_NOWHERE;
}

static inline void heap_add(struct tw__heap *heap, struct heap_timer *timer, uint64_t deadline_ns,
			    unsigned arity)
{
	tw__heap_push_reserved_as(heap, &timer->entry, (int64_t)deadline_ns, heap_shape(arity));
}

static inline void heap_remove(struct tw__heap *heap, struct heap_timer *timer, unsigned arity)
{
	tw__heap_remove_as(heap, &timer->entry, heap_shape(arity));
}

static inline void heap_retime(struct tw__heap *heap, struct heap_timer *timer,
			       uint64_t deadline_ns, unsigned arity)
{
	tw__heap_rekey_as(heap, &timer->entry, (int64_t)deadline_ns, heap_shape(arity));
}

/*
 * The first one has come due: it leaves, or takes its next place, a period after the last by its
 * nominal time.
 */
static inline struct heap_timer *heap_take(struct tw__heap *heap, unsigned arity)
{
	struct heap_timer *timer = (struct heap_timer *)(void *)heap->nodes[0].entry;
	if (timer->entry.spare)
		heap_retime(heap, timer,
			    heap_first_ns(heap) + timer->entry.spare * UINT64_C(1000000), arity);
	else
		heap_remove(heap, timer, arity);
	return timer;
}

#endif
