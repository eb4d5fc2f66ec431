/*
 * The inside of schedulers (contract: tickwheel/scheduler.h).
 *
 *     run.c         the host: a slice, a turn, what a turn may ask
 *     scheduler.c   config, creation, submit, delays, ends, statistics
 *
 * A task is
 *
 *   READY     in the heap, by its expiration and its number;
 *   DELAYED   in the object's line; its timer makes it READY;
 *   RUNNING   `current`. If it goes on it is READY again, in its old place;
 *   ENDED     by a cancel or a close while its timer's callback was on its way, which gives the
 *             node back.
 *
 * One lock guards all. No user's function is called, and no work is submitted, under it.
 *
 * Host: IDLE -> REQUESTED (by the thread that brings a task; the work goes to the executor, once)
 * -> RUNNING (the executor's thread, or tw_scheduler_run) -> REQUESTED ("more work") or IDLE.
 *
 * Users of the object: its creator, work that is out, and each DELAYED or ENDED task. The creator
 * leaves when no turn runs, and no thread is `releasing`: inside `wanted`, or inside the done
 * function of a task that a cancel or a close ends.
 *
 * Invariants, whenever the lock is free: if the heap holds something, and the scheduler is not
 * closed, the host is REQUESTED or RUNNING. The heap has room for all tasks that have not ended.
 */
#ifndef TW_EXECUTOR_SCHEDULER_H
#define TW_EXECUTOR_SCHEDULER_H

#include "executor/base/object.h"
#include "tickwheel/scheduler.h"

enum tw__task_state { TW__TASK_READY, TW__TASK_DELAYED, TW__TASK_RUNNING, TW__TASK_ENDED };

/* What is called at a task's end. */
struct tw__told {
	tw_scheduler_done_fn *done;
	void *arg, *context; /* the submitter's */
	const char *name;
};

struct tw__task {
	struct tw__node node; /* state; flags: cancelled while it runs; mode: priority */
	uint64_t number;
	tw_turn_fn *fn;
	int64_t expiration_ns;
	struct tw__told told;
	tw_timer timer;
	struct tw__in_line place; /* of a DELAYED one */
	uint32_t index;           /* in the heap */
};

_Static_assert(sizeof(struct tw__task) <= TW__SMALL_NODE, "a small node");

struct tw__heap_node {
	int64_t key;
	struct tw__task *task;
};

/* All zero: empty. */
struct tw__heap {
	struct tw__heap_node *nodes; /* from 1 */
	uint32_t count, room;
};

enum tw__host_state { TW__HOST_IDLE, TW__HOST_REQUESTED, TW__HOST_RUNNING };

struct tw_scheduler {
	struct tw__object object;
	struct tw_scheduler_config config; /* constant, complete */
	/* Under the lock. */
	struct tw__heap tasks;
	uint64_t last_number;
	enum tw__host_state host;
	struct tw__task *current;
	int64_t slice_begin_ns, turn_begin_ns;
	struct tw_scheduler_stats stats; /* without its gauges */
};

static inline int64_t tw__scheduler_now(tw_scheduler *scheduler)
{
	return (int64_t)tw_service_now(tw__object_service(&scheduler->object));
}

static inline bool tw__scheduler_closed(const tw_scheduler *scheduler)
{
	return tw_load_relaxed(&scheduler->object.closed);
}

static inline struct tw__nodes *tw__scheduler_nodes(tw_scheduler *scheduler)
{
	return tw__object_small_nodes(&scheduler->object);
}

static inline tw_scheduler *tw__task_owner(const struct tw__task *task)
{
	return TW__OWNER(tw_scheduler, object, tw_load_relaxed(&task->node.owner));
}

/* The first ready task, or NULL. */
static inline struct tw__task *tw__scheduler_first(const tw_scheduler *scheduler)
{
	return scheduler->tasks.count ? scheduler->tasks.nodes[1].task : NULL;
}

/* ----------------------------------------------------------------------- heap.c */

/* Makes room for `count` tasks in all: until then no push fails. Returns 0 or -ENOMEM. */
int tw__heap_reserve(struct tw__heap *heap, uint32_t count);

void tw__heap_push(struct tw__heap *heap, struct tw__task *task);
void tw__heap_remove(struct tw__heap *heap, const struct tw__task *task);

/* ------------------------------------------------------------------------ run.c */

/*
 * Drops n users and the lock. If there is something to run, and the host does not know, submits the
 * work, or calls `wanted`. The scheduler may be gone afterwards.
 */
void tw__scheduler_unlock(tw_scheduler *scheduler, uint32_t n);

/* Calls the done function, if there is one. item: as of the thread's inside. Without the lock. */
void tw__scheduler_tell(tw_scheduler *scheduler, const struct tw__told *told, const void *item,
			enum tw_fate fate, int result);

void tw__scheduler_host_called(struct tw__work *work);

#endif
