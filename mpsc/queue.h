/*
 * The MPSC queue: a lane for each thread that has pushed, and who owns which.
 *
 * A thread gets its lane at its first push, with one look at a thread-local cache ever after. The
 * cache is keyed by a queue id that is never used twice (not by address, which a later queue may
 * have again). When the thread ends, its lane stays, is drained, and goes to the next thread that
 * comes. The list of lanes only grows until the queue is destroyed.
 *
 * One process-wide lock (the registry's) guards ties, owners and the list's growth: it is taken
 * when a thread meets a queue for the first time, when it ends, and when a queue is destroyed; so
 * an exit hook and a destroy cannot meet halfway.
 *
 * Pairing table
 *   QUEUE1  lanes (list head): store-seq_cst (attach) -> load-seq_cst (driver, statistics): a lane
 *       is complete before it is found.
 *   QUEUE2  owner_count: add acq_rel (attach, exit) against add acq_rel of 0 (tw__queue_owners):
 *       read-modify-writes of one variable are in one order. A thread that comes after the driver's
 *       count sees what the driver wrote before it; the pushes of a thread that has left before it
 *       are seen by the driver (gate.h, GATE5).
 *   Everything else is under the registry's lock or belongs to one thread.
 */
#ifndef TW_MPSC_QUEUE_H
#define TW_MPSC_QUEUE_H

#include "mpsc/lane.h"

/* What the layer above keeps with each lane: its struct begins with the lane. */
struct tw__queue_ops {
	size_t lane_size;
	void (*init)(struct tw__lane *lane, void *context);
	/* its thread has ended; under the registry's lock */
	void (*orphaned)(struct tw__lane *lane, void *context);
	tw__entry_use_fn *use;
};

struct tw__queue {
	uint64_t id; /* never 0, never used again */
	_Atomic(struct tw__lane *) lanes;
	_Atomic uint32_t lane_count;  /* lanes ever made; written under the registry's lock */
	_Atomic uint32_t owner_count; /* of these: with a living thread; likewise */
	uint32_t bound;
	const struct tw__queue_ops *ops;
	void *context;
};

/* What a thread has at hand: one look finds all of it. */
#define TW__NO_QUEUE UINT64_MAX
struct tw__thread {
	uint64_t queue_id; /* the queue it used last, or TW__NO_QUEUE */
	struct tw__lane *lane;
	void *context; /* wheel/core/context.h */
};

extern _Thread_local struct tw__thread tw__thread;

void tw__queue_init(struct tw__queue *queue, uint32_t bound, const struct tw__queue_ops *ops,
		    void *context);

/* No thread may be in a call on the queue, nor come back; threads that used it may live on. */
void tw__queue_fini(struct tw__queue *queue);

/*
 * The same in a forked child: lanes may be half written and are left alone. No thread comes back to
 * them.
 */
void tw__queue_abandon(struct tw__queue *queue);

/* Finds or makes this thread's lane. NULL: out of memory. */
struct tw__lane *tw__queue_attach(struct tw__queue *queue);

static inline struct tw__lane *tw__queue_lane(struct tw__queue *queue)
{
	if (tw_likely(tw__thread.queue_id == queue->id))
		return tw__thread.lane;
	return tw__queue_attach(queue);
}

/*
 * Threads that have a lane now. A thread that attaches later sees all that the caller has written
 * before (QUEUE2).
 */
static inline uint32_t tw__queue_owners(struct tw__queue *queue)
{
	return tw_add_acq_rel(&queue->owner_count, 0); /* QUEUE2 */
}

/* To walk all lanes: for (l = tw__queue_first(q); l; l = l->next). */
static inline struct tw__lane *tw__queue_first(struct tw__queue *queue)
{
	/* QUEUE1: pairs with attach; gate's GATE2 for a thread's first push */
	return tw_load_seq_cst(&queue->lanes);
}

#endif
