/*
 * What the pool's parts share: pool.c (birth, end, submit), pool/source.c (what comes from services), pool/worker.c (the threads).
 *
 * The workers' rules stand in pool/worker.c.
 */
#ifndef TW_EXECUTOR_POOL_PARTS_H
#define TW_EXECUTOR_POOL_PARTS_H

#include <ck_ec.h>
#include <ck_ring.h>
#include <pthread.h>
#include <stdalign.h>

#include "executor/pool/task_ring.h"
#include "executor/base/work_queue.h"
#include "mpsc/base/atomics.h"
#include "mpsc/base/fork.h"
#include "tickwheel/pool.h"
#include "wheel/service/histogram.h"
#include "wheel/run/run.h"
#include "wheel/service/thread.h"

enum { TW__SOURCE_BATCHES = 4096 };

/* What one service hands over: a ring with one producer, its driver. Sources are never freed before the pool is. */
struct tw__source {
	tw_executor executor; /* first: the service's executor is its source */
	tw_pool *pool;
	struct tw__source *next;       /* in the pool's list; set once */
	_Atomic bool in_use;           /* written under the pool's lock */
	bool owns_pool;                /* the service made the pool for itself */
	tw_service *watching;          /* the service, if it has on_stuck; written under the pool's lock */
	_Atomic uint32_t watch_asleep; /* of that service: user_code.h, U3 */
	ck_ring_buffer_t *slots;
	ck_ring_t ring;
};

struct tw__worker {
	alignas(TW__CACHE_LINE) _Atomic(tw_batch *) open; /* by its thread: the batch it took, others may join it */
	_Atomic uint64_t open_sequence;
	_Atomic uint32_t joiners; /* by others: they may be looking at the open batch (pool/worker.c) */
	_Atomic uint32_t busy;    /* by its thread: inside a callback or task */
	_Atomic uint64_t completed;
	struct ck_ec32 wakes;
	tw_pool *pool;
	unsigned index;
	unsigned turn;             /* which of sources, plain tasks and work is looked at first */
	tw_executor pinned;        /* its face to work that is to run on it alone */
	struct tw__work_queue own; /* that work */
	pthread_t thread;
	struct tw__histogram wait, run;
};

struct tw_pool {
	tw_executor executor; /* first: its public face */
	unsigned worker_count;
	unsigned max_workers; /* worker_count .. TW__WORKERS_MAX; constant */
	struct tw__worker *workers;
	_Atomic(struct tw__source *) sources; /* grows only, under the lock */

	struct tw__task_ring tasks;
	struct tw__work_queue works;                               /* of layers above, for any worker */
	alignas(TW__CACHE_LINE) _Atomic uint32_t waiting_for_room; /* submitters; looked at after each task */
	_Atomic uint32_t bringing_work; /* threads in the middle of submitting work; workers are not counted (D1) */
	_Atomic uint32_t room;          /* moves on when a task leaves the ring and somebody waits */

	alignas(TW__CACHE_LINE) _Atomic uint32_t searching; /* workers that look for work, or are being woken to */
	_Atomic uint32_t sleepers;                          /* bits set in idle */
	_Atomic uint32_t stopping;
	_Atomic uint64_t idle[TW__WORKERS_MAX / 64]; /* asleep, or about to */

	_Atomic uint64_t rejected, dropped;
	_Atomic uint32_t watchers; /* services with on_stuck; written under the lock */
	_Atomic uint32_t pins;     /* pinned executors given out */
	_Atomic uint32_t ended;    /* the threads are gone */
	uint32_t fork_generation;  /* of the process that made it */
	pthread_mutex_t lock;      /* sources, users, closing */
	unsigned users;            /* sources in use */
	unsigned holders;          /* strands and the like that run on it; under the lock */
	bool closed;
	bool owned; /* a service made it for itself; constant */
};

/* The worker that the calling thread is, or NULL. */
extern _Thread_local struct tw__worker *tw__this_worker;

/* pool/worker.c */
void *tw__worker_main(void *worker);
void tw__worker_init(struct tw__worker *worker, tw_pool *pool, unsigned index, const struct tw_executor_ops *pinned);

/* Work has been put where workers find it (E2's first half): wakes one if that is needed. */
void tw__pool_call_for_help(tw_pool *pool);

/* The same, for the one worker that may run it. */
void tw__pool_call(tw_pool *pool, unsigned worker);

/* Lets all workers go on and end. */
void tw__pool_wake_all(tw_pool *pool, unsigned started);

/* In a child of the process that made the pool: its locks may be held for ever, its threads are not there. */
static inline bool tw__pool_forked(const tw_pool *pool)
{
	return tw_unlikely(pool->fork_generation != tw__fork_generation());
}

/* pool.c: whether the executor is a face of one worker (tw__pool_pin). */
bool tw__pool_is_pinned(const tw_executor *executor);

/* Frees all, with no thread left. */
void tw__pool_free(tw_pool *pool);

/* pool/source.c: whether anything that services handed over waits. */
bool tw__sources_empty(tw_pool *pool);

/* A task begins: wakes the tick threads that sleep without a date to look at runs. */
void tw__sources_wake_watchers(tw_pool *pool);

/* The next batch of any source, or NULL. */
tw_batch *tw__sources_take(tw_pool *pool);

#endif
