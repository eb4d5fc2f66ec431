/*
 * The pool's ring: bounded, many producers, many consumers.
 *
 * Positions only rise. A cell says which position's task it holds. Consumers write no cell, unlike
 * in D. Vyukov's queue (2010), so a line of two cells moves once each way between two processors. A
 * producer that is preempted inside a push holds up no other producer; consumers see the ring as
 * empty from its cell on. Producers look at `head` only if their last look finds the ring full.
 *
 * Pairing table
 *   RING1  sequence: store (push) -> load (pop): the task. Seq_cst for WANTED (parts.h).
 *   RING2  head: CAS (pop) -> load acquire (push): the pop has read the cell before it is written
 *       again. head_seen: store-release -> load-acquire hands that on to other producers.
 *   RING3  tail: CAS (push) against or (close): the later one sees the earlier one's value.
 *   RING4  sequence: store (push) -> load-acquire (close): each task is in its cell.
 * tail only hands out positions: relaxed. head: seq_cst for ROOM (parts.h).
 *
 * Model: test/model/ring.pml.
 */
#ifndef TW_EXECUTOR_POOL_RING_H
#define TW_EXECUTOR_POOL_RING_H

#include <errno.h>
#include <sched.h>
#include <stdalign.h>
#include <stdlib.h>

#include "mpsc/base/reserve.h"
#include "mpsc/base/atomics.h"
#include "tickwheel/service.h"

enum {
	TW__RING_TIMED_ONE_IN = 16,
	TW__RING_FETCH_AHEAD = 16, /* cells */
	TW__RING_CELLS_MIN = 4096
};

/* A plain task; or, if fn is NULL, an item in `arg`. */
struct tw__pool_task {
	tw_fn *fn;
	void *arg;
	void *context;      /* wheel/core/frame.h; the task's until its end */
	uint64_t queued_ns; /* 0: not timed */
};

/* Read while it may be written anew: then the pop fails. */
struct tw__ring_cell {
	alignas(32) _Atomic uint64_t sequence; /* position + 1 of the task that it holds */
	_Atomic(tw_fn *) fn;
	_Atomic(void *) arg;
	_Atomic(void *) context;
};

struct tw__ring {
	void *memory;
	struct tw__ring_cell *cells;
	_Atomic uint64_t *times; /* queued_ns of one cell in TIMED_ONE_IN */
	uint64_t mask;
	uint64_t task_mask; /* as plain tasks see it */
	alignas(TW__CACHE_LINE) _Atomic uint64_t tail;
	_Atomic uint64_t head_seen;                    /* by a producer: not above `head` */
	alignas(TW__CACHE_LINE) _Atomic uint64_t head; /* the next position to pop */
};

#define TW__RING_CLOSED (UINT64_C(1) << 63)

/* tasks: plain tasks that may wait, a power of two or 0. Memory is touched as it is used. */
static inline bool tw__ring_init(struct tw__ring *ring, uint64_t tasks)
{
	uint64_t size = 2 * tasks > TW__RING_CELLS_MIN ? 2 * tasks : TW__RING_CELLS_MIN;
	ring->mask = size - 1;
	ring->task_mask = tasks - 1;
	ring->memory =
	    tw__alloc_zeroed(size + size / TW__RING_TIMED_ONE_IN + 2, sizeof *ring->cells);
	if (!ring->memory)
		return false;
	uintptr_t at = (uintptr_t)ring->memory;
	ring->cells =
	    (struct tw__ring_cell *)((at + TW__CACHE_LINE - 1) & -(uintptr_t)TW__CACHE_LINE);
	ring->times = (_Atomic uint64_t *)(ring->cells + size);
	return true;
}

static inline struct tw__ring_cell *tw__ring_cell(struct tw__ring *ring, uint64_t at)
{
	return &ring->cells[at & ring->mask];
}

/* NULL if the task of that position is not timed. */
static inline _Atomic uint64_t *tw__ring_time(struct tw__ring *ring, uint64_t at)
{
	return at % TW__RING_TIMED_ONE_IN ? NULL
					  : &ring->times[(at & ring->mask) / TW__RING_TIMED_ONE_IN];
}

/* The position may be given out by now. */
static inline bool tw__ring_is_full(struct tw__ring *ring, uint64_t at, bool is_task)
{
	int64_t most = (int64_t)(is_task ? ring->task_mask : ring->mask);
	if (tw_likely((int64_t)(at - tw_load_acquire(&ring->head_seen)) <= most)) /* RING2 */
		return false;
	uint64_t head = tw_load_seq_cst(&ring->head); /* RING2, ROOM */
	tw_store_release(&ring->head_seen, head);     /* RING2 */
	return (int64_t)(at - head) > most;
}

/* Returns 0, -EAGAIN (no room) or -ESHUTDOWN (closed). */
static inline __attribute__((always_inline)) int tw__ring_push(struct tw__ring *ring,
							       const struct tw__pool_task *task)
{
	uint64_t tail = tw_load_relaxed(&ring->tail), at; /* RING3 */
	do {
		at = tail & ~TW__RING_CLOSED;
		if (tw_unlikely(at != tail))
			return -ESHUTDOWN;
		if (tw_unlikely(tw__ring_is_full(ring, at, task->fn)))
			return -EAGAIN;
	} while (!tw_cas_relaxed(&ring->tail, &tail, tail + 1)); /* RING3 */
	struct tw__ring_cell *cell = tw__ring_cell(ring, at);
	_Atomic uint64_t *time = tw__ring_time(ring, at);
	tw_prefetch_write(tw__ring_cell(ring, at + TW__RING_FETCH_AHEAD));
	if (tw_unlikely(time != NULL) && task->fn)
		tw_store_relaxed(time, task->queued_ns ? task->queued_ns
						       : tw_clock_now(tw_clock_monotonic()));
	tw_store_relaxed(&cell->fn, task->fn);
	tw_store_relaxed(&cell->arg, task->arg);
	tw_store_relaxed(&cell->context, task->context);
	tw_store_seq_cst(&cell->sequence, at + 1); /* RING1, RING4, WANTED */
	return 0;
}

/* Returns false if the ring is empty, or its first task is still being written. */
static inline bool tw__ring_pop(struct tw__ring *ring, struct tw__pool_task *task)
{
	uint64_t at = tw_load_relaxed(&ring->head);
	for (;;) {
		struct tw__ring_cell *cell = tw__ring_cell(ring, at);
		_Atomic uint64_t *time = tw__ring_time(ring, at);
		uint64_t sequence = tw_load_seq_cst(&cell->sequence); /* RING1 */
		if (tw_unlikely(sequence != at + 1)) {
			if ((int64_t)(sequence - (at + 1)) < 0)
				return false;
			at = tw_load_relaxed(&ring->head);
			continue;
		}
		task->fn = tw_load_relaxed(&cell->fn);
		task->arg = tw_load_relaxed(&cell->arg);
		task->context = tw_load_relaxed(&cell->context);
		task->queued_ns = time ? tw_load_relaxed(time) : 0;
		if (tw_cas_seq_cst(&ring->head, &at, at + 1)) /* RING2, ROOM */
			return true;
	}
}

/* Tells whether a pop would find a task behind `ahead` others. */
static inline bool tw__ring_waits(struct tw__ring *ring, uint64_t ahead)
{
	for (;;) {
		uint64_t at = tw_load_relaxed(&ring->head) + ahead;
		uint64_t sequence =
		    tw_load_seq_cst(&tw__ring_cell(ring, at)->sequence); /* WANTED */
		if (sequence == at + 1)
			return true;
		if ((int64_t)(sequence - (at + 1)) < 0)
			return false;
	}
}

/* Tasks that wait, with those being written. */
static inline uint64_t tw__ring_count(struct tw__ring *ring)
{
	uint64_t head = tw_load_relaxed(&ring->head);
	uint64_t tail = tw_load_relaxed(&ring->tail) & ~TW__RING_CLOSED;
	return (int64_t)(tail - head) > 0 ? tail - head : 0;
}

/* Returns the end: the position of none. */
static inline uint64_t tw__ring_close(struct tw__ring *ring)
{
	return tw_or_seq_cst(&ring->tail, TW__RING_CLOSED); /* RING3 */
}

/* Waits for the pushes that came before the close. */
static inline void tw__ring_await(struct tw__ring *ring, uint64_t end)
{
	for (uint64_t at = tw_load_relaxed(&ring->head); (int64_t)(end - at) > 0; at++)
		/* RING4 */
		while ((int64_t)(tw_load_acquire(&tw__ring_cell(ring, at)->sequence) - at) <= 0)
			sched_yield();
}

#endif
