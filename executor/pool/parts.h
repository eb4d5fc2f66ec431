/*
 * What the parts of the pool share:
 *   pool.c    birth, submit
 *   close.c   end
 *   source.c  what services hand over
 *   worker.c  the threads: how they find and run work
 *   jobs.c    work that may block, of which one worker is kept free
 *   wake.c    who wakes whom, how a worker sleeps and ends; POOL2, POOL3, POOL6
 *   grow.c    the starter thread, which starts workers while others block
 *   stats.c   counters
 */
#ifndef TW_EXECUTOR_POOL_PARTS_H
#define TW_EXECUTOR_POOL_PARTS_H

#include <ck_ec.h>
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>

#include "mpsc/base/owner.h"
#include "executor/pool/work_queue.h"
#include "executor/pool/batch_ring.h"
#include "executor/pool/internal.h"
#include "executor/pool/task_ring.h"
#include "mpsc/base/futex.h"
#include "mpsc/base/histogram.h"
#include "mpsc/base/misuse.h"
#include "mpsc/base/thread.h"
#include "wheel/core/user_code.h"
#include "wheel/run/work.h"

/*
 * What one service hands over: a ring with one producer, its driver. Sources are freed with the
 * pool.
 */
struct tw__source {
	tw_executor executor; /* first: the service's executor is its source */
	tw_pool *pool;
	struct tw__source *next; /* in the pool's list; set once */
	_Atomic bool in_use;     /* written under the pool's lock */
	struct tw__batch_ring ring;
};

struct tw__worker {
	/* by its thread: the batch that it has taken; others may join */
	alignas(TW__CACHE_LINE) _Atomic(tw_batch *) open;
	_Atomic uint64_t open_sequence;
	_Atomic uint32_t joiners; /* by others: they may be reading the open batch (worker.c) */
	struct ck_ec32 wakes;
	tw_pool *pool;
	unsigned index;

	/* by its thread: odd while inside a run; changes with each */
	alignas(TW__CACHE_LINE) _Atomic uint64_t runs;
	_Atomic uint64_t completed;
	struct tw__work *work;  /* that it runs, or NULL */
	unsigned turn;          /* which of sources, plain tasks and work is looked at first */
	bool retired;           /* it has been idle for too long, and ends */
	uint64_t idle_until_ns; /* while it sleeps; UINT64_MAX: without limit */

	_Atomic uint32_t state; /* enum tw__worker_state; of slots beyond `permanent` */
	/* by the starter: `runs` at a look that found it inside a run, and since when */
	uint64_t seen_runs, seen_ns;
	pthread_t thread;
	struct tw__histogram wait, run;
};

enum tw__worker_state {
	TW__WORKER_NONE = 0,   /* the slot has no thread */
	TW__WORKER_ALIVE = 1,  /* set by the thread that starts it */
	TW__WORKER_RETIRED = 2 /* set by the worker: its thread is to be joined */
};

/* Spans of time that tests change before they create a pool. */
struct tw__pool_times {
	uint64_t look_ns;    /* between two looks of the starter */
	uint64_t blocked_ns; /* a run that lasts longer blocks, whatever the other workers do */
	uint64_t idle_ns;    /* after which a worker beyond the permanent ones ends */
};

extern struct tw__pool_times tw__pool_times;

/* Bits of tw__starter.calls. */
enum { TW__CALL_ARMED = 1, TW__CALL_STOP = 2 };

/*
 * One thread, which sleeps while no run waits for a busy pool. All is its own except `calls` and
 * the counters.
 */
struct tw__starter {
	alignas(TW__CACHE_LINE) _Atomic uint32_t calls; /* what it is to do; a futex */
	/* its last look found a worker inside the same run as the look before */
	_Atomic uint32_t runs_last;
	_Atomic uint64_t grown, at_max, start_failures;
	bool started;
	bool full;            /* runs wait for a pool at its maximum, all blocked: counted */
	bool growing;         /* it has started workers since the pool became short */
	unsigned quiet_looks; /* in a row that found the pool not short */
	pthread_t thread;
	struct tw_service_config threads; /* how to start workers */
	char name[16];
};

struct tw__sleepers {
	/* Workers that look for work, or are being woken to. */
	_Atomic uint32_t searching;
	_Atomic uint32_t sleepers;                   /* bits set in idle */
	_Atomic uint64_t idle[TW__WORKERS_MAX / 64]; /* asleep, or about to */
};

struct tw__pool_counters {
	_Atomic uint64_t rejected, dropped;
};

/* Under the lock. */
struct tw__pool_users {
	unsigned users;   /* sources in use */
	unsigned holders; /* layers that run on it */
	bool closed;
};

/* Jobs of limiters: all workers but one may be inside them. */
struct tw__pool_jobs {
	struct tw__work_queue queue;
	tw_executor face;        /* takes them */
	_Atomic uint32_t inside; /* workers inside a job; below max_workers */
};

struct tw_pool {
	tw_executor executor; /* first: its public face */
	unsigned permanent;   /* workers that never end before the pool does; constant */
	unsigned max_workers; /* permanent .. TW__WORKERS_MAX; constant */
	/* max_workers slots; those from `slots` on were never touched */
	struct tw__worker *workers;
	_Atomic uint32_t slots; /* slots that have had a worker; grows only, by the starter */
	struct tw__pool_times times;
	_Atomic(struct tw__source *) sources; /* grows only, under the lock */

	struct tw__task_ring tasks;
	struct tw__work_queue works; /* of layers above, for any worker */
	struct tw__pool_jobs jobs;
	/* submitters; looked at after each task */
	alignas(TW__CACHE_LINE) _Atomic uint32_t waiting_for_room;
	/* threads without a run record that are inside a submit (POOLEND1) */
	_Atomic uint32_t bringing;
	_Atomic uint32_t room; /* changes when a task leaves the ring and a submitter waits */

	alignas(TW__CACHE_LINE) struct tw__sleepers asleep;
	_Atomic uint32_t stopping;

	struct tw__pool_counters counters;
	_Atomic uint32_t ended; /* the threads are gone */
	struct tw__origin origin;
	pthread_mutex_t lock; /* sources, users, closing */
	struct tw__pool_users users;
	bool owned; /* a service made it for itself; constant */
	struct tw__starter starter;
};

/* The worker that the calling thread is, or NULL. */
extern _Thread_local struct tw__worker *tw__this_worker;

/* What a worker has found to do. */
struct tw__find {
	struct tw__work *work; /* NULL: one of the others */
	bool job;              /* the work is a job: this worker is counted in jobs.inside */
	tw_batch *batch;       /* NULL: a plain task */
	uint64_t sequence;
	/* the run that was claimed by joining; -1: the batch was taken, and this worker shows it */
	int claimed;
	struct tw__pool_task task;
};

static inline bool tw__starter_is_armed(tw_pool *pool)
{
	return tw_load_seq_cst(&pool->starter.calls) & TW__CALL_ARMED; /* wake.c, POOL7 */
}

/*
 * Tells whether something may wait for the calling worker: a hint for those that run many things in
 * a row, which then look at the time. True if the starter has found a run that lasts.
 */
static inline bool tw__worker_is_awaited(struct tw__worker *self)
{
	return tw_load_relaxed(&self->pool->starter.runs_last); /* grow.c, GROW2 */
}

/* A slot's first worker is about to start. */
void tw__pool_slot_init(tw_pool *pool, unsigned index);

/* Starts the thread of a slot that has none. */
int tw__worker_start(struct tw__worker *worker, const struct tw_service_config *config);

/* The entry check of each call (mpsc/base/entry.h). */
#define tw__pool_check(pool) TW__ORIGIN_CHECK(__func__, pool, "pool")

#endif
