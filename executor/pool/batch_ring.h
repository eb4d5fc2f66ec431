/*
 * The ring of a source: bounded, one producer, many consumers. Positions only rise, so a consumer
 * whose compare-and-swap of head succeeds has read the batch of its position: a producer writes a
 * cell again only when head has passed it.
 *
 * Pairing table; POOL1 and POOL2 are in worker.c and wake.c
 *   BATCHES1  head: CAS (pop) -> load-acquire (push): the pop has read the cell before it is
 *       written again.
 *   BATCHES2  head: CAS (pop) -> load-acquire (pop, count), then load of tail: the tail is not
 *       older than the one that the pop has seen. So head is never above tail, and no cell is read
 *       that was never written.
 */
#ifndef TW_EXECUTOR_BATCH_RING_H
#define TW_EXECUTOR_BATCH_RING_H

#include <stdalign.h>

#include "mpsc/base/atomics.h"
#include "tickwheel/executor.h"

enum { TW__BATCH_RING_SIZE = 4096 }; /* a power of two */

struct tw__batch_ring {
	_Atomic(tw_batch *) *cells;
	alignas(TW__CACHE_LINE) _Atomic uint64_t tail; /* the next position to push to */
	alignas(TW__CACHE_LINE) _Atomic uint64_t head; /* the next position to pop */
};

/* The producer's. False: full. */
static inline bool tw__batch_ring_push(struct tw__batch_ring *ring, tw_batch *batch)
{
	uint64_t tail = tw_load_relaxed(&ring->tail);
	if (tail - tw_load_acquire(&ring->head) == TW__BATCH_RING_SIZE) /* BATCHES1 */
		return false;
	tw_store_relaxed(&ring->cells[tail % TW__BATCH_RING_SIZE], batch);
	tw_store_seq_cst(&ring->tail, tail + 1); /* POOL1, POOL2 */
	return true;
}

/* NULL: empty. */
static inline tw_batch *tw__batch_ring_pop(struct tw__batch_ring *ring)
{
	uint64_t head = tw_load_acquire(&ring->head); /* BATCHES2 */
	tw_batch *batch;
	do {
		if (head == tw_load_seq_cst(&ring->tail)) /* POOL1, POOL2 */
			return NULL;
		batch = tw_load_relaxed(&ring->cells[head % TW__BATCH_RING_SIZE]);
	} while (!tw_cas_acq_rel(&ring->head, &head, head + 1)); /* BATCHES1, BATCHES2 */
	return batch;
}

/* Of batches that are pushed or popped at this moment, any may be missing or counted. */
static inline uint64_t tw__batch_ring_count(struct tw__batch_ring *ring)
{
	uint64_t head = tw_load_acquire(&ring->head); /* BATCHES2 */
	uint64_t tail = tw_load_seq_cst(&ring->tail); /* POOL2 */
	return tail - head;
}

#endif
