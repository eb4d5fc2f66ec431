/*
 * The ring of plain tasks: bounded, many producers, many consumers (D. Vyukov's bounded MPMC queue, 2010: a sequence number in
 * each cell says whose turn it is). A producer that is preempted in the middle holds up no other producer; consumers see the ring
 * as empty from its cell on, until it goes on.
 *
 * Differs: the consumer's head is moved by a sequentially consistent operation, so that a producer may sleep until there is room
 * (pool_worker.c, E5).
 *
 * Rejected: Concurrency Kit's ring with many producers. Its producers wait for each other in turn, spinning: four of them and three
 * workers on two busy processors took more than 30 s for what this one does in 0.1 s.
 *
 * Pairing table
 *   T1  sequence: store-release (push) -> load-acquire (pop): the task.
 *   T2  sequence: store-release (pop) -> load-acquire (push): the pop has read the cell before it is written again.
 *   head and tail only hand out positions: relaxed, but for E5.
 */
#ifndef TW_EXECUTOR_TASK_RING_H
#define TW_EXECUTOR_TASK_RING_H

#include <stdalign.h>

#include "mpsc/atomics.h"
#include "tickwheel/service.h"

/* A plain task; fn NULL: arg is a batch, handed over to the pool's public face. */
struct tw__pool_task {
	tw_fn *fn;
	void *arg;
	uint64_t queued_ns; /* 0: not timed */
	void *context;      /* wheel/context.h; the task's until its end */
};

struct tw__task_cell {
	_Atomic uint64_t sequence; /* position: free for it; position + 1: holds its task */
	struct tw__pool_task task;
};

struct tw__task_ring {
	struct tw__task_cell *cells;
	uint64_t mask;
	alignas(TW__CACHE_LINE) _Atomic uint64_t tail; /* the next position to push to */
	alignas(TW__CACHE_LINE) _Atomic uint64_t head; /* the next position to pop */
};

static inline void tw__task_ring_init(struct tw__task_ring *ring, struct tw__task_cell *cells, uint64_t size)
{
	*ring = (struct tw__task_ring){.cells = cells, .mask = size - 1};
	for (uint64_t i = 0; i < size; i++)
		tw_store_relaxed(&cells[i].sequence, i);
}

/* False: full. */
static inline bool tw__task_ring_push(struct tw__task_ring *ring, const struct tw__pool_task *task)
{
	uint64_t at = tw_load_relaxed(&ring->tail);
	for (;;) {
		struct tw__task_cell *cell = &ring->cells[at & ring->mask];
		uint64_t sequence = tw_load_acquire(&cell->sequence); /* T2 */
		if (sequence == at) {
			if (!tw_cas_relaxed(&ring->tail, &at, at + 1))
				continue;
			cell->task = *task;
			tw_store_release(&cell->sequence, at + 1); /* T1 */
			return true;
		}
		if ((int64_t)(sequence - at) < 0)
			return false;
		at = tw_load_relaxed(&ring->tail);
	}
}

/* False: empty, or the next task is still being written. */
static inline bool tw__task_ring_pop(struct tw__task_ring *ring, struct tw__pool_task *task)
{
	uint64_t at = tw_load_relaxed(&ring->head);
	for (;;) {
		struct tw__task_cell *cell = &ring->cells[at & ring->mask];
		uint64_t sequence = tw_load_acquire(&cell->sequence); /* T1 */
		if (sequence == at + 1) {
			if (!tw_cas_seq_cst(&ring->head, &at, at + 1)) /* E5 */
				continue;
			*task = cell->task;
			tw_store_release(&cell->sequence, at + ring->mask + 1); /* T2 */
			return true;
		}
		if ((int64_t)(sequence - (at + 1)) < 0)
			return false;
		at = tw_load_relaxed(&ring->head);
	}
}

/* Tasks that wait, those being written or read included. */
static inline uint64_t tw__task_ring_count(struct tw__task_ring *ring)
{
	uint64_t head = tw_load_seq_cst(&ring->head), tail = tw_load_relaxed(&ring->tail); /* E5 */
	return (int64_t)(tail - head) > 0 ? tail - head : 0;
}

static inline bool tw__task_ring_full(struct tw__task_ring *ring)
{
	return tw__task_ring_count(ring) > ring->mask;
}

#endif
