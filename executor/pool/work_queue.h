/*
 * A queue of work (wheel/run/work.h), first in, first out. It is unbounded, since the links are in
 * the works. It has many producers and many consumers. A push is one compare-and-swap and cannot
 * fail. A consumer takes a short lock, takes the whole stack, and reverses it, so each work is
 * moved once.
 *
 * Pairing table
 *   QUEUED1  stack: CAS seq_cst (push) -> exchange acquire (pop), load acquire (count): the work's
 *       link and what its owner wrote.
 *   QUEUED2  "some are there" for sleepers (pool/wake.c, POOL2): the push, and the store of
 *       `first`, are seq_cst, as are the looks. While a consumer has emptied the stack and not yet
 *       stored `first`, others see nothing. That consumer looks again before it runs anything, and
 *       calls for help.
 */
#ifndef TW_EXECUTOR_WORK_QUEUE_H
#define TW_EXECUTOR_WORK_QUEUE_H

#include <stdalign.h>

#include "mpsc/base/spinlock.h"

#include "wheel/run/work.h"

struct tw__work_queue {
	alignas(TW__CACHE_LINE) _Atomic(struct tw__work *) stack; /* the last pushed is on top */
	/* To be popped next; written under the lock. */
	alignas(TW__CACHE_LINE) _Atomic(struct tw__work *) first;
	_Atomic uint32_t lock;
};

static inline void tw__work_queue_push(struct tw__work_queue *queue, struct tw__work *work)
{
	work->next = tw_load_relaxed(&queue->stack);
	while (!tw_cas_seq_cst(&queue->stack, &work->next, work)) { /* QUEUED1, QUEUED2 */
	}
}

static inline bool tw__work_queue_empty(struct tw__work_queue *queue)
{
	return !tw_load_seq_cst(&queue->first) && !tw_load_seq_cst(&queue->stack); /* QUEUED2 */
}

/* NULL: empty. */
static inline struct tw__work *tw__work_queue_pop(struct tw__work_queue *queue)
{
	if (tw__work_queue_empty(queue))
		return NULL;
	tw__tiny_lock(&queue->lock);
	struct tw__work *work = tw_load_relaxed(&queue->first);
	if (!work)
		work = tw__work_take_all(&queue->stack); /* QUEUED1 */
	if (work)
		tw_store_seq_cst(&queue->first, work->next); /* QUEUED2 */
	tw__tiny_unlock(&queue->lock);
	return work;
}

/* How many wait, for gauges. Walks them all, and keeps consumers out meanwhile. */
static inline size_t tw__work_queue_count(struct tw__work_queue *queue)
{
	size_t count = 0;
	if (tw__work_queue_empty(queue))
		return 0;
	tw__tiny_lock(&queue->lock);
	for (struct tw__work *work = tw_load_relaxed(&queue->first); work; work = work->next)
		count++;
	/* QUEUED1 */
	for (struct tw__work *work = tw_load_acquire(&queue->stack); work; work = work->next)
		count++;
	tw__tiny_unlock(&queue->lock);
	return count;
}

#endif
