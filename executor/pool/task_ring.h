/*
 * The ring of plain tasks: bounded, many producers, many consumers. It is D. Vyukov's bounded MPMC
 * queue (2010): a sequence number in each cell says which operation comes next there. A producer
 * that is preempted inside a push holds up no other producer. Consumers see the ring as empty from
 * its cell on, until it continues.
 *
 * Differences: the consumer's head is moved by a sequentially consistent operation, so a producer
 * may sleep until there is room (worker.c, POOL5). A producer's last store is sequentially
 * consistent, too, so a consumer may sleep until a task comes (POOL2). The ring can be closed by a
 * bit in the tail, so no count of the threads inside is needed.
 *
 * Rejected: Concurrency Kit's ring with many producers. Its producers spin until the one before
 * them is done. Four of them and three workers on two busy processors took more than 30 s for what
 * this ring does in 0.1 s.
 *
 * Pairing table
 *   RING1  sequence: store (push) -> load (pop): the task. Release and acquire would do; they are
 *       seq_cst for POOL2.
 *   RING2  sequence: store-release (pop) -> load-acquire (push): the pop has read the cell before
 *       it is written again.
 *   RING3  tail: CAS (push) against or (close): the later one sees the earlier one's value, since
 *       both are on the same object. So close finds the last position ever given out.
 *   RING4  sequence: store (push) -> load-acquire (close): close has waited until every task is in
 *       its cell.
 *   head and tail only hand out positions: relaxed, except for POOL5.
 */
#ifndef TW_EXECUTOR_TASK_RING_H
#define TW_EXECUTOR_TASK_RING_H

#include <errno.h>
#include <sched.h>
#include <stdalign.h>

#include "mpsc/base/atomics.h"
#include "tickwheel/service.h"

/* A plain task. If fn is NULL, arg is a batch that was handed over to the pool's public face. */
struct tw__pool_task {
	tw_fn *fn;
	void *arg;
	uint64_t queued_ns; /* 0: not timed */
	void *context;      /* wheel/core/context.h; the task's until its end */
};

struct tw__task_cell {
	_Atomic uint64_t sequence; /* position: free for it; position + 1: holds its task */
	struct tw__pool_task task;
};

struct tw__task_ring {
	struct tw__task_cell *cells;
	uint64_t mask;
	/* The next position to push to, and whether it is closed. */
	alignas(TW__CACHE_LINE) _Atomic uint64_t tail;
	alignas(TW__CACHE_LINE) _Atomic uint64_t head; /* the next position to pop */
};

static inline void tw__task_ring_init(struct tw__task_ring *ring, struct tw__task_cell *cells,
				      uint64_t size)
{
	*ring = (struct tw__task_ring){.cells = cells, .mask = size - 1};
	for (uint64_t i = 0; i < size; i++)
		tw_store_relaxed(&cells[i].sequence, i);
}

#define TW__RING_CLOSED (UINT64_C(1) << 63)

/* Returns 0, -EAGAIN (full) or -ESHUTDOWN (closed). */
static inline int tw__task_ring_push(struct tw__task_ring *ring, const struct tw__pool_task *task)
{
	uint64_t at = tw_load_relaxed(&ring->tail); /* RING3 */
	for (;;) {
		if (tw_unlikely(at & TW__RING_CLOSED))
			return -ESHUTDOWN;
		struct tw__task_cell *cell = &ring->cells[at & ring->mask];
		uint64_t sequence = tw_load_acquire(&cell->sequence); /* RING2 */
		if (sequence == at) {
			if (!tw_cas_relaxed(&ring->tail, &at, at + 1)) /* RING3 */
				continue;
			cell->task = *task;
			tw_store_seq_cst(&cell->sequence, at + 1); /* RING1, RING4, POOL2 */
			return 0;
		}
		if ((int64_t)(sequence - at) < 0)
			return -EAGAIN;
		at = tw_load_relaxed(&ring->tail);
	}
}

/* False: empty, or the next task is still being written. */
static inline bool tw__task_ring_pop(struct tw__task_ring *ring, struct tw__pool_task *task)
{
	uint64_t at = tw_load_relaxed(&ring->head);
	for (;;) {
		struct tw__task_cell *cell = &ring->cells[at & ring->mask];
		uint64_t sequence = tw_load_seq_cst(&cell->sequence); /* RING1, POOL2 */
		if (sequence == at + 1) {
			if (!tw_cas_seq_cst(&ring->head, &at, at + 1)) /* POOL5 */
				continue;
			*task = cell->task;
			tw_store_release(&cell->sequence, at + ring->mask + 1); /* RING2 */
			return true;
		}
		if ((int64_t)(sequence - (at + 1)) < 0)
			return false;
		at = tw_load_relaxed(&ring->head);
	}
}

/*
 * Tells whether a pop would find a task. Reads only the cell that is popped next: the tail belongs
 * to the producers.
 */
static inline bool tw__task_ring_waits(struct tw__task_ring *ring)
{
	for (;;) {
		uint64_t at = tw_load_relaxed(&ring->head);
		/* POOL2 */
		uint64_t sequence = tw_load_seq_cst(&ring->cells[at & ring->mask].sequence);
		if (sequence == at + 1)
			return true;
		if ((int64_t)(sequence - (at + 1)) < 0)
			return false;
	}
}

/* Tasks that wait, with those being written or read. */
static inline uint64_t tw__task_ring_count(struct tw__task_ring *ring)
{
	uint64_t head = tw_load_seq_cst(&ring->head); /* POOL5 */
	uint64_t tail = tw_load_relaxed(&ring->tail) & ~TW__RING_CLOSED;
	return (int64_t)(tail - head) > 0 ? tail - head : 0;
}

static inline bool tw__task_ring_full(struct tw__task_ring *ring)
{
	return tw__task_ring_count(ring) > ring->mask;
}

/*
 * No push succeeds any more. Returns when the pushes under way are done; what they pushed may be
 * popped. For one caller.
 */
static inline void tw__task_ring_close(struct tw__task_ring *ring)
{
	uint64_t end = tw_or_seq_cst(&ring->tail, TW__RING_CLOSED); /* RING3 */
	for (uint64_t at = tw_load_relaxed(&ring->head); at != end; at++)
		/* RING4 */
		while ((int64_t)(tw_load_acquire(&ring->cells[at & ring->mask].sequence) -
				 (at + 1)) < 0)
			sched_yield();
}

#endif
