/*
 * What the simulation's parts share: sim.c (creation, end, the public calls), queue.c (hand-overs
 * that wait), step.c (what happens next).
 */
#ifndef TW_EXECUTOR_SIM_PARTS_H
#define TW_EXECUTOR_SIM_PARTS_H

#include <errno.h>
#include <stdlib.h>

#include "tickwheel/sim.h"
#include "mpsc/base/misuse.h"

#include "wheel/core/context.h"
#include "wheel/core/service.h"

/* Queues: of plain tasks and works, and of timers. */
enum { TW__SIM_TASKS, TW__SIM_TIMERS, TW__SIM_QUEUES, TW__SIM_WORKERS_MAX = 1024 };

/* A hand-over: the tickets of a batch that are left, a work, or a plain task. */
struct tw__sim_item {
	tw_batch *batch; /* NULL: a plain task */
	tw_fn *fn;
	void *arg;
	void *context; /* that a plain task runs under */
	size_t tickets;
	uint64_t number; /* of its first ticket, over all */
};

struct tw__sim_queue {
	struct tw__sim_item *items; /* a ring; room is 0 or a power of two */
	size_t room, first, count;
};

/* One run that a worker has taken. */
struct tw__sim_run {
	struct tw__sim_item item;
	int index; /* the claimed entry of a batch of timers; -1: a work or a task */
};

struct tw__sim_worker {
	bool holds;
	struct tw__sim_run held;
	uint64_t ready_ns; /* begins what it holds, or takes the next, not before this */
};

struct tw_sim {
	tw_executor executor; /* first */
	tw_clock *clock;
	tw_service *service;
	struct tw_sim_config config; /* complete; its service is not read again */
	struct tw__origin origin;
	bool stepping;

	pthread_mutex_t lock; /* for queues, numbers, draws and trace: any thread may submit */
	struct tw__sim_queue queues[TW__SIM_QUEUES];
	uint64_t numbered;      /* tickets so far */
	_Atomic size_t waiting; /* hand-overs in all queues */
	uint64_t random, random_of_user;

	struct tw__sim_worker *workers;
	int current;           /* the worker that runs the callback, or -1 */
	uint64_t spent_ns;     /* by that callback */
	uint64_t turn_late_ns; /* drawn for the next turn */
	uint64_t steps;        /* at this instant */
	uint64_t trace;
};

/* The entry check of each call (mpsc/base/entry.h). */
#define tw__sim_check(sim) TW__ORIGIN_CHECK(__func__, sim, "sim")

/* Adds an event to the trace and calls the event function: with the lock held, and without. */
void tw__sim_event_locked(tw_sim *sim, enum tw_sim_event_kind kind, uint32_t worker,
			  uint64_t value);
void tw__sim_event(tw_sim *sim, enum tw_sim_event_kind kind, uint32_t worker, uint64_t value);

#endif
