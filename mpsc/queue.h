/*
 * The MPSC queue: a lane for each thread that has pushed, and the record of each thread.
 *
 * A thread gets its lane at its first push, and finds it in a thread-local cache, keyed by a queue
 * id that is never used twice. When the thread ends, its lane stays, is drained, and goes to the
 * next thread that comes. So does its record: its ties to queues, and what it runs. The lists of
 * lanes and of records only grow. The registry's lock guards records, ties, owners and the lists'
 * growth.
 *
 * End of a thread: one key's destructor. If a later exit handler of the thread uses the library,
 * the thread takes a record anew, and the destructor is called once more.
 *
 * End of the code: dlclose of a plugin that contains the static library, or exit(). The key goes,
 * and records are freed if no object is left; in a forked child nothing is freed. At exit() threads
 * may be inside: one that ends now leaves its part to the system. The handler is atexit's: it comes
 * after the end of C++ statics that were made after the first object of the library.
 *
 * Pairing table
 *   QUEUE1  lanes (list head): store-seq_cst (attach) -> load-seq_cst (driver, statistics): a lane
 *       is complete before it is found.
 *   QUEUE2  owner_count: add acq_rel (attach, exit) against add acq_rel of 0 (tw__queue_owners), in
 *       one order: a thread that comes after the driver's count sees what the driver wrote before
 *       it; the driver sees the pushes of a thread that left before it (gate.h, GATE5).
 *   QUEUE3  tw__run_records: store-release (make) -> load acquire: a record is complete before it
 *       is found.
 *   QUEUE4  holds: add acq_rel (an object is made, freed) -> load-acquire (unload): what the last
 *       object's end has written.
 *   What a record shows of runs: USER1 (wheel/core/frame.h), BRINGING (executor/pool/parts.h).
 */
#ifndef TW_MPSC_QUEUE_H
#define TW_MPSC_QUEUE_H

#include <stdalign.h>

#include "mpsc/base/clock.h"
#include "mpsc/lane.h"
#include "tickwheel/task.h"

/* What the layer above keeps with each lane: its struct begins with the lane. */
struct tw__queue_ops {
	size_t lane_size;
	bool (*init)(struct tw__lane *lane, void *context); /* false: out of memory */
	void (*fini)(struct tw__lane *lane);
	/* its thread has ended; under the registry's lock */
	void (*orphaned)(struct tw__lane *lane, void *context);
	tw__entry_pack_fn *pack;
};

struct tw__queue {
	uint64_t id; /* never 0, never used again */
	_Atomic(struct tw__lane *) lanes;
	_Atomic uint32_t owner_count; /* lanes with a living thread; under the registry's lock */
	uint32_t bound;
	const struct tw__queue_ops *ops;
	void *context;
};

/* What the short ways need of their thread. */
#define TW__NO_QUEUE UINT64_C(0) /* ids begin at 1 */
struct tw__thread {
	uint64_t queue_id; /* the queue it used last, or TW__NO_QUEUE */
	struct tw__lane *lane;
	void *context;              /* wheel/core/frame.h */
	struct tw__counter counter; /* its reading of the monotonic clock */
};

extern _Thread_local struct tw__thread tw__thread;

/* ------------------------------------------------------------------ threads */

/* A thread. */
struct tw__run_record {
	/* By the thread: what it runs (wheel/core/frame.h). */
	alignas(TW__CACHE_LINE) _Atomic uint64_t word; /* odd inside a run; changes with each */
	_Atomic(const void *) owner; /* a service; of a pool's own tasks the pool */
	_Atomic(tw_fn *) fn;
	_Atomic(void *) arg;
	_Atomic(const char *) name; /* or NULL */
	/* on the owner's clock (a pool's: the monotonic one); or UNDATED, until a look dates it */
	_Atomic uint64_t since_ns;

	struct tw__run_record *next;  /* constant */
	struct tw__run_record **mine; /* of the thread that has it; for the unload */
	struct tw__tie *ties;         /* only the thread walks the list */
	bool in_use;                  /* registry's lock */
	_Atomic uint32_t thread_id;   /* the system's */

	/* By the thread: the pool that it submits to (executor/pool/parts.h, BRINGING). */
	_Atomic(const void *) bringing;
};

extern _Atomic(struct tw__run_record *) tw__run_records;
extern _Thread_local struct tw__run_record *tw__my_run_record;

/* Makes the calling thread's record. NULL: out of memory. */
struct tw__run_record *tw__run_record_make(void);

/* An object is made or freed that calls user code, or that threads have a part of. */
void tw__unload_hold(void);
void tw__unload_drop(void);

/* ------------------------------------------------------------------- queues */

void tw__queue_init(struct tw__queue *queue, uint32_t bound, const struct tw__queue_ops *ops,
		    void *context);

/* No thread may be in a call on the queue, nor come back. */
void tw__queue_fini(struct tw__queue *queue);

/* Finds or makes this thread's lane. NULL: out of memory. */
struct tw__lane *tw__queue_attach(struct tw__queue *queue);

static inline struct tw__lane *tw__queue_lane(struct tw__queue *queue)
{
	if (tw_likely(tw__thread.queue_id == queue->id))
		return tw__thread.lane;
	return tw__queue_attach(queue);
}

/* Threads that have a lane now (QUEUE2). */
static inline uint32_t tw__queue_owners(struct tw__queue *queue)
{
	return tw_add_acq_rel(&queue->owner_count, 0); /* QUEUE2 */
}

static inline struct tw__lane *tw__queue_first(struct tw__queue *queue)
{
	/* QUEUE1: pairs with attach; gate's GATE2 for a thread's first push */
	return tw_load_seq_cst(&queue->lanes);
}

#endif
