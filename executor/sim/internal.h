/*
 * What the simulation's parts share: sim.c (birth, end, the public calls), sim/queue.c (what waits), sim/step.c (what happens next).
 */
#ifndef TW_EXECUTOR_SIM_PARTS_H
#define TW_EXECUTOR_SIM_PARTS_H

#include <pthread.h>

#include "mpsc/base/locked.h"
#include "mpsc/base/atomics.h"
#include "mpsc/base/fork.h"
#include "tickwheel/sim.h"

#include "wheel/core/service.h"

/* Queues: plain tasks and works share the first; each service has one of the others, the last serves all that come late. */
enum { TW__SIM_QUEUES = 8, TW__SIM_WORKERS_MAX = 1024 };

/* A hand-over: the tickets of a batch that are left, a work, or a plain task. */
struct tw__sim_item {
	tw_batch *batch; /* NULL: a plain task */
	tw_fn *fn;
	void *arg;
	size_t tickets;
	uint64_t number; /* of its first ticket, over all */
};

struct tw__sim_queue {
	tw_service *service;
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
	uint64_t ready_ns; /* begins what it holds, or takes the next, not before */
};

struct tw_sim {
	tw_executor executor; /* first */
	tw_clock *clock;
	tw_service *service;
	struct tw_sim_config config; /* complete; its service is not looked at again */
	uint32_t fork_generation;
	bool stepping;

	pthread_mutex_t lock; /* queues, numbers, draws and trace: submits may come from anywhere */
	struct tw__sim_queue queues[TW__SIM_QUEUES];
	uint64_t numbered;      /* tickets so far */
	_Atomic size_t waiting; /* hand-overs in all queues */
	uint64_t random, random_of_user;

	struct tw__sim_worker *workers;
	int current;           /* the worker in whose name a callback runs, or -1 */
	uint64_t spent_ns;     /* by that callback */
	uint64_t turn_late_ns; /* drawn for the next turn */
	uint64_t steps;        /* at this instant */
	uint64_t trace;
};

/* What a call begins with: 0; -EINVAL: NULL; -EPERM: in a forked child. */
static inline int tw__sim_check_in(const char *call, const tw_sim *sim)
{
	if (!sim)
		return tw__refuse(-EINVAL, call, "sim is NULL");
	return sim->fork_generation != tw__fork_generation() ? -EPERM : 0;
}
#define tw__sim_check(sim) tw__sim_check_in(__func__, sim)

/* Into the trace, and told; with the lock held already, and without. */
void tw__sim_event_locked(tw_sim *sim, enum tw_sim_event_kind kind, uint32_t worker, uint64_t value);
void tw__sim_event(tw_sim *sim, enum tw_sim_event_kind kind, uint32_t worker, uint64_t value);

#endif
