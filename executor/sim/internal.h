/*
 * A simulation: an executor over one service with a manual clock and a manual drive. Runs on the
 * thread that calls tw_sim_step and the like; submits come from any thread.
 */
#ifndef TW_EXECUTOR_SIM_PARTS_H
#define TW_EXECUTOR_SIM_PARTS_H

#include <errno.h>
#include <stdlib.h>

#include "mpsc/base/random.h"
#include "mpsc/base/entry.h"
#include "mpsc/base/assert.h"
#include "tickwheel/context.h"
#include "tickwheel/sim.h"

enum { TW__SIM_TASKS, TW__SIM_BATCHES, TW__SIM_QUEUES, TW__SIM_WORKERS_MAX = 1024 };

/* Tickets that were handed over, of a batch or of a plain task. */
struct tw__sim_item {
	struct tw__sim_item *next;
	tw_batch *batch; /* NULL: a plain task */
	tw_fn *fn;
	void *arg, *context;
	unsigned tickets, taken;
	uint64_t number; /* of its first ticket, over all */
};

struct tw__sim_queue {
	struct tw__sim_item *first, *last;
};

struct tw__sim_worker {
	bool holds;
	struct tw__sim_item held; /* its ticket is `taken` */
	uint64_t ready_ns;        /* begins what it holds, or takes the next, not before this */
};

struct tw_sim {
	tw_executor executor; /* first */
	tw_clock *clock;
	tw_service *service;
	struct tw_sim_config config; /* complete */
	struct tw__origin origin;
	bool stepping;
	bool closing; /* with TW_CLOSE_RUN */
	int failed;   /* of that close: -ENOMEM */

	pthread_mutex_t lock; /* for queues, numbers, draws, trace */
	struct tw__sim_queue queues[TW__SIM_QUEUES];
	uint64_t numbered; /* tickets so far */
	uint64_t random, random_of_user;
	uint64_t trace;

	struct tw__sim_worker *workers;
	int current;           /* the worker that runs the callback, or -1 */
	uint64_t spent_ns;     /* by that callback */
	uint64_t turn_late_ns; /* drawn for the next turn */
	uint64_t steps;        /* at this instant */
};

/* For trace and on_event. The lock is held. */
void tw__sim_event(tw_sim *sim, enum tw_sim_event_kind kind, uint32_t worker, uint64_t value);

/* ---------------------------------------------------------------------- step.c */

enum { TW__SIM_LATER = 2 };

/*
 * Carries out one event that is not later than limit_ns. Returns 1; 0: there is none; LATER: the
 * next one is later; -ENOMEM, -ELOOP.
 */
int tw__sim_step(tw_sim *sim, uint64_t limit_ns);

/*
 * Moves a drawn worker of those that can move at this instant; UINT64_MAX: of all that have
 * something to do. Returns 1, 0 or -ENOMEM.
 */
int tw__sim_move_worker(tw_sim *sim, uint64_t now_ns);

/* The executor's submit. */
int tw__sim_submit(tw_executor *self, tw_batch *batch, size_t n);

/* Queues a copy of the item. The lock is held. Returns 0 or -ENOMEM. */
int tw__sim_enqueue(tw_sim *sim, const struct tw__sim_item *item);

/* Drops a queue's items, also those that workers hold. Runs go back to their services. */
void tw__sim_drop(tw_sim *sim, unsigned queue);

#endif
