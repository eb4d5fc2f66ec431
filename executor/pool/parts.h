/*
 * The pool: one queue, first in, first out, and threads that take from it.
 *
 * Items are batches of timers, work of the layers (wheel/run/work.h), and plain tasks. At most
 * `queue` tasks wait; batches and work have further cells. A batch that finds no cell is refused:
 * its service offers it again in the next tick. Work is `kept` until there is room, since a thread
 * that waits for a layer's end may be the driver.
 *
 * The worker that takes a batch shows it, and how many runs are left, in its word `open`. It claims
 * the runs one by one, and so does each worker that finds the ring empty (G8).
 *
 * At most `limit` workers are inside a job (work of limiters that may block). A job beyond that is
 * `held` until one ends.
 *
 * Rules
 * 1. If an item waits that a worker may take, then a worker is `searching`, or none sleeps. Each
 *    push, and each take that leaves something, calls a sleeper unless one searches. So at most one
 *    worker is on its way at any time (G9), and it calls the next.
 * 2. If such an item waits, none searches and none sleeps, the starter is awake (threads.c). It is
 *    the last of the sleepers.
 * 3. The lock guards the counts of searching and of sleeping workers. `wanted` says whether a push
 *    has to wake one, so most pushes and takes need no lock.
 * 4. A claim reads nothing of a batch before its CAS of `open`, after which the batch cannot
 *    return. If the batch has been submitted again meanwhile, it has runs left to claim as well.
 * 5. What a thread submits may run, and lead to the pool's end, while it still looks for a sleeper.
 *    So close waits for submitters. Each shows the pool in its run record; a thread without memory
 *    for one is refused.
 * 6. At the end each worker that ends calls the next sleeper.
 *
 * Pairing table (of the ring: ring.h)
 *   WANTED  the item: store seq_cst (a cell's sequence, or `open`), then load of wanted, against
 *       its store under the lock, then the look at the ring and at `open` (all seq_cst): a
 *       submitter that calls nobody, or a worker or starter about to sleep or to stop searching,
 *       sees the other. slots: store seq_cst before its worker's thread starts, load seq_cst with
 *       the look at `open`.
 *   OPEN  open: store seq_cst (its worker), CAS acq_rel (claim) -> load acquire, CAS acq_rel
 *       (claim): the batch's fields and entries. A pool of one worker stores relaxed.
 *   CALLED  called: store relaxed (under the lock) -> load relaxed (the sleeper), which takes the
 *       lock next. The futex compares the word.
 *   ROOM  waiting: add, then load of head (of a task or work that waits for room), against the CAS
 *       of head, then load of waiting (the worker that has made room; all seq_cst). room:
 *       add-release (the worker, close) -> load-acquire (a task that waits), whose push sees the
 *       room, or that the pool is closed.
 *   BRINGING  record.bringing: store relaxed, then the push, whose run comes after it and leads to
 *       close; store-release after the last look at the pool -> load acquire (close).
 *
 * Models: test/model/pool.pml, batch.pml (claims).
 */
#ifndef TW_EXECUTOR_POOL_PARTS_H
#define TW_EXECUTOR_POOL_PARTS_H

#include <limits.h>
#include <sched.h>

#include "executor/pool/layer.h"
#include "executor/pool/ring.h"
#include "mpsc/base/histogram.h"
#include "mpsc/base/process.h"

enum tw__worker_state {
	TW__WORKER_NONE = 0, /* the slot has no thread */
	TW__WORKER_ALIVE = 1,
	TW__WORKER_RETIRED = 2 /* it takes nothing more: its thread is to be joined */
};

/* A thread that may sleep until it is called. Under the lock. */
struct tw__sleeper {
	struct tw__sleeper *next;
	_Atomic uint32_t called; /* not 0: taken off the sleepers; a futex */
};

struct tw__worker {
	tw_pool *pool;
	struct tw__sleeper sleeper;
	_Atomic uint32_t state; /* enum tw__worker_state; under the lock */

	/* by its thread: odd while inside a run */
	alignas(TW__CACHE_LINE) _Atomic uint64_t runs;
	_Atomic uint64_t completed;
	unsigned streak; /* items taken since it has slept */
	struct tw__histogram wait, run;

	/* a batch, and in the low bits the runs left to claim */
	alignas(TW__CACHE_LINE) _Atomic uintptr_t open;

	/* by the starter: `runs` at a look inside a run, and since when */
	uint64_t seen_runs, seen_ns;
	pthread_t thread;
};

/* What a worker has taken. */
struct tw__taken {
	tw_batch *batch;           /* NULL: it is something else */
	int index;                 /* the claimed run of the batch */
	struct tw__worker *of;     /* which has opened the batch */
	struct tw__pool_task task; /* without fn: its arg is the batch, or work */
};

/* Tests change them before they create a pool. */
struct tw__pool_times {
	uint64_t look_ns;    /* between two looks of the starter */
	uint64_t blocked_ns; /* a run that lasts longer blocks, whatever the other workers do */
	uint64_t idle_ns;    /* after which a worker beyond the permanent ones ends */
};

extern struct tw__pool_times tw__pool_times;

/* The starter's own, except what is atomic. */
struct tw__starter {
	struct tw__sleeper sleeper;
	/* a run lasts (threads.c) */
	_Atomic uint32_t runs_last;
	_Atomic uint64_t grown, at_max, start_failures;
	bool full;            /* at_max is counted */
	unsigned quiet_looks; /* in a row that found the pool not short */
	pthread_t thread;
	struct tw_service_config threads; /* how to start workers */
	char name[16];
};

/* Work that was set aside. Under the lock. */
struct tw__pool_aside {
	struct tw__chunk_list held; /* jobs beyond the limit */
	struct tw__chunk_list kept; /* waits for room */
	unsigned count;             /* of both */
	unsigned inside;            /* workers inside a job */
	unsigned limit;             /* constant: all workers but one, or the only one */
};

struct tw_pool {
	tw_executor executor;          /* first */
	struct tw__pool_limits limits; /* next to it */
	/* constant */
	unsigned permanent; /* workers that are always there */
	bool owned;         /* a service made it for itself */
	struct tw__pool_times times;
	struct tw__origin origin;
	struct tw__worker *workers; /* limits.capacity; those from `slots` on were never touched */
	_Atomic uint32_t slots;     /* that have had a worker; grows only, by the starter */

	struct tw__ring ring;

	/* read by each push and take */
	alignas(TW__CACHE_LINE) _Atomic uint32_t wanted; /* a push is to call; under the lock */
	_Atomic uint32_t waiting;                        /* for room: submitters, and work kept */
	_Atomic uint32_t room; /* changes when there is room for them; a futex */

	alignas(TW__CACHE_LINE) _Atomic uint32_t lock; /* of what follows, down to `users` */
	bool searching; /* a worker that was called has not looked yet */
	bool closed, stopping;
	unsigned alive; /* workers */
	/* asleep, or about to; the starter at the end */
	struct tw__sleeper *idle;
	struct tw__pool_aside aside;
	unsigned services, users; /* services that use the pool; with layers */

	_Atomic uint64_t rejected, dropped;
	_Atomic uint32_t ended; /* the threads are gone; a futex */
	struct tw__starter starter;
};

#define tw__pool_check(pool) TW__ORIGIN_CHECK(__func__, pool, "pool")

extern _Thread_local struct tw__worker *tw__this_worker;

static inline bool tw__is_worker_of(const tw_pool *pool)
{
	return tw__this_worker && tw__this_worker->pool == pool;
}

/* ------------------------------------------------- queue.c, under the lock */

/* Whether something waits that a worker may take, and as a number: a gauge. */
bool tw__pool_waits(tw_pool *pool);
uint64_t tw__pool_count(tw_pool *pool);

/* The starter is about to sleep. Gives up the lock. */
void tw__starter_sleeps(tw_pool *pool);

/* ---------------------------------------------- queue.c, without the lock */

/* Pushes, and calls a worker for it. Returns 0, -ESHUTDOWN, or -EAGAIN: full. */
int tw__pool_push(tw_pool *pool, const struct tw__pool_task *task);

/* The same for a batch or work. Work that finds no room is kept. */
int tw__pool_push_item(tw_pool *pool, tw_batch *item);

/* There may be room, or the pool is closed. */
void tw__pool_tell_room(tw_pool *pool);

/* Sleeps until there is something to do. Returns false if the thread ends. */
bool tw__worker_next(struct tw__worker *self, struct tw__taken *taken);

/* Returns when it is called, or false: the time is over. */
bool tw__sleeper_waits(struct tw__sleeper *self, uint64_t until_ns);

/* Claims one more run of the batch. Returns false if none is left. */
bool tw__worker_claim(struct tw__taken *taken);

void tw__pool_job_ends(tw_pool *pool);

/* Lets the workers end, one after the other, when they find nothing. */
void tw__pool_let_end(tw_pool *pool);

/* --------------------------------------------------------------- threads.c */

/*
 * Starts a worker. fresh_ns: if not 0, its first run counts as begun at that instant. Returns 0, or
 * a negative errno.
 */
int tw__worker_start(tw_pool *pool, const struct tw_service_config *config, uint64_t fresh_ns);

int tw__starter_start(tw_pool *pool, const struct tw_service_config *config);

/* Ends the threads, and waits for them, when nothing waits any more. */
void tw__pool_stop(tw_pool *pool);

#endif
