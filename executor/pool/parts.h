/*
 * The pool: one queue, and threads that take from it.
 *   ring.h    the queue as a ring, without a lock
 *   pool.c    birth, submit
 *   queue.c   pushing, taking, waking, sleeping
 *   worker.c  the threads: how they run what they have taken
 *   grow.c    the starter thread, which starts workers while others block
 *   close.c   the end
 *   stats.c   counters
 *
 * Items. The queue is first in, first out: batches of timers, work of the layers above
 * (wheel/run/work.h), and plain tasks. It is a ring. A plain task that finds no room is refused, or
 * waits. Items find room always: those beyond the ring form a list, `overflow`, linked by their
 * first word. While it is not empty, nothing else is pushed to the ring. Who takes something from
 * the ring moves the first of the list there.
 *
 * A batch holds many runs. The worker that takes it claims the first one, and lists the batch in
 * `opened` if there are more. Then it claims run after run without the lock. A worker that finds
 * the ring empty claims a run of an opened batch. So a slow callback holds up only itself (G8).
 *
 * Jobs (work of limiters that may block) leave one worker free: at most `limit` workers are inside
 * one. A job beyond that is set aside in `held` until a worker leaves one. Then it goes to the end
 * of the queue.
 *
 * Rules
 *   1. If an item waits that a worker may take, then a worker is `searching`, or none sleeps. Each
 *      push, and each take that leaves something, calls a sleeper unless one searches. So at most
 *      one worker is on its way at any time (G9), and it calls the next.
 *   2. If such an item waits, none searches and none sleeps, the starter is armed (grow.c).
 *   3. The lock guards who searches, sleeps, or is armed. `wanted` says whether a push has to call
 *      one of them, so most pushes and takes need no lock.
 *   4. A batch leaves `opened` before its worker gives back its first claim. Who reads an opened
 *      batch holds the lock, so no batch is read that has returned, or whose service has ended.
 *   5. What a thread submits may run, and lead to the pool's end, while it still looks for a
 *      sleeper. So close waits for submitters. Each shows the pool in its run record; one without
 *      memory for a record is counted. A worker of the pool need not: close joins it.
 *
 * Pairing table (of the ring: ring.h)
 *   WANTED  the item: store seq_cst (a cell's sequence), then load of wanted, against its store,
 *       then the look at the ring (all seq_cst; the stores of wanted are under the lock): of a
 *       submitter that calls nobody, and a worker about to sleep, a searcher that stops, or a
 *       starter about to sleep, one sees the other.
 *   CALLED  called: store relaxed (under the lock) -> load relaxed (the sleeper), which takes the
 *       lock next. The futex's own look at the word keeps a call between the two from being missed.
 *   ROOM  behind: store, then load of head (of one that waits for room), against the CAS of head,
 *       then load of behind (the worker that has made room; all seq_cst): one sees the other.
 *       room.changes: written under the lock. Items do not rely on it: a worker or a starter about
 *       to sleep looks at the overflow too.
 *   BEHIND  behind: store (under the lock; the overflow is in the ring) -> load acquire (push):
 *       what is pushed now comes after it.
 *   BRINGING  record.bringing: store relaxed, then the push, whose run comes after it and leads to
 *       close; store-release after the last look at the pool -> load acquire (close). The count
 *       `bringing` likewise.
 *   runs, completed: relaxed gauges.
 *
 * The model is test/model/pool.pml.
 */
#ifndef TW_EXECUTOR_POOL_PARTS_H
#define TW_EXECUTOR_POOL_PARTS_H

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>

#include "executor/pool/internal.h"
#include "executor/pool/ring.h"
#include "mpsc/base/futex.h"
#include "mpsc/base/histogram.h"
#include "mpsc/base/misuse.h"
#include "mpsc/base/spinlock.h"
#include "mpsc/base/thread.h"
#include "wheel/core/user_code.h"
#include "wheel/run/work.h"

/* Items, linked by their first word. {0}: empty. */
struct tw__items {
	struct tw__work *first, *last;
	uint64_t count;
};

enum tw__worker_state {
	TW__WORKER_NONE = 0, /* the slot has no thread */
	TW__WORKER_ALIVE = 1,
	TW__WORKER_RETIRED = 2 /* it takes nothing more: its thread is to be joined */
};

struct tw__worker {
	tw_pool *pool;
	unsigned index;
	/* under the lock */
	struct tw__worker *next_idle;
	_Atomic uint32_t called; /* 1: taken off the sleepers to search; a futex */
	_Atomic uint32_t state;  /* enum tw__worker_state */

	/* by its thread: odd while inside a run; changes with each */
	alignas(TW__CACHE_LINE) _Atomic uint64_t runs;
	_Atomic uint64_t completed;
	unsigned streak; /* items taken since it has slept */
	struct tw__histogram wait, run;

	/* by the starter: `runs` at a look that found it inside a run, and since when */
	uint64_t seen_runs, seen_ns;
	pthread_t thread;
};

/* What a worker has taken. */
struct tw__taken {
	tw_batch *batch;       /* NULL: it is something else */
	int claimed;           /* the first run of the batch */
	unsigned ran;          /* runs of the batch that are over */
	bool opened;           /* this worker has listed it */
	bool is_job;           /* the work is one: this worker is counted in `inside` */
	struct tw__work *work; /* NULL: a plain task, or a batch */
	struct tw__pool_task task;
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

/* One thread, which sleeps while no run waits for a busy pool. Its own, except what is atomic. */
struct tw__starter {
	_Atomic uint32_t calls; /* what it is to do; a futex, written under the lock */
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

/* Bits of tw_pool.behind. */
enum { TW__BEHIND_OVERFLOW = 1, TW__BEHIND_WAITERS = 2 };

/* Items and submitters that wait for room in the ring. Under the lock. */
struct tw__pool_room {
	struct tw__items overflow; /* items beyond the ring */
	unsigned waiting;          /* submitters of plain tasks */
	_Atomic uint32_t changes;  /* when there is room for them; a futex */
};

/* Under the lock, except for `limit`, which is constant. */
struct tw__pool_jobs {
	struct tw__items held;   /* beyond the limit */
	_Atomic uint32_t inside; /* workers inside a job */
	unsigned limit;          /* all but one, or the only one */
};

struct tw__pool_counters {
	_Atomic uint64_t rejected, dropped;
};

/* What uses the pool. Under the lock. */
struct tw__pool_users {
	unsigned services, layers;
};

struct tw_pool {
	tw_executor executor; /* first */
	/* constant */
	unsigned permanent;   /* workers that are always there */
	unsigned max_workers; /* permanent .. TW__WORKERS_MAX */
	bool owned;           /* a service made it for itself */
	struct tw__pool_times times;
	struct tw__origin origin;
	struct tw__worker
	    *workers;           /* max_workers slots; those from `slots` on were never touched */
	_Atomic uint32_t slots; /* that have had a worker; grows only, by the starter */

	struct tw__ring ring;

	/* read by each push and take; written under the lock */
	alignas(TW__CACHE_LINE) _Atomic uint32_t wanted; /* a push is to call */
	_Atomic uint32_t behind;                         /* something waits for room: TW__BEHIND_ */

	alignas(TW__CACHE_LINE) _Atomic uint32_t lock; /* of what follows, down to `users` */
	bool searching; /* a worker that was called has not looked yet */
	bool closed, stopping;
	unsigned alive; /* workers */
	struct tw__pool_room room;
	_Atomic(struct tw__chunk *) opened; /* batches, the oldest first */
	struct tw__worker *idle;            /* asleep, or about to; the last one first */
	struct tw__pool_jobs jobs;
	struct tw__pool_users users;

	_Atomic uint32_t bringing; /* submitters without a run record */
	struct tw__pool_counters counters;
	_Atomic uint32_t ended; /* the threads are gone; a futex */
	struct tw__starter starter;
};

/* The entry check of each call (mpsc/base/entry.h). */
#define tw__pool_check(pool) TW__ORIGIN_CHECK(__func__, pool, "pool")

#endif
