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
 * leaves when no turn runs, and no thread is `releasing`: inside of `wanted`, or of the done
 * function of a task that a cancel or a close ends.
 *
 * Invariants, whenever the lock is free: if the heap holds something, and the scheduler is not
 * closed, the host is REQUESTED or RUNNING. The heap has room for all tasks that have not ended.
 */
#ifndef TW_EXECUTOR_SCHEDULER_H
#define TW_EXECUTOR_SCHEDULER_H

#include "executor/base/handles.h"
#include "executor/scheduler/heap.h"
#include "executor/base/object.h"
#include "tickwheel/scheduler.h"

enum tw__task_state { TW__TASK_READY, TW__TASK_DELAYED, TW__TASK_RUNNING, TW__TASK_ENDED };

struct tw__task {
	struct tw__node node;           /* state; flags: cancelled while it runs; mode: priority */
	struct tw__task_heap_item item; /* id: its number */
	tw_turn_fn *fn;
	void *arg;
	int64_t expiration_ns;
	tw_scheduler_done_fn *done;
	void *context; /* of the submitter */
	const char *name;
	tw_scheduler *scheduler;
	tw_timer timer;
	struct tw__in_line place; /* of a DELAYED one */
};

/* A copy, since the node may be gone. */
struct tw__told {
	tw_scheduler_done_fn *done;
	void *arg, *context;
};

enum tw__host_state { TW__HOST_IDLE, TW__HOST_REQUESTED, TW__HOST_RUNNING };

struct tw_scheduler {
	struct tw__object object;
	struct tw_scheduler_config config; /* constant, complete */
	struct tw__nodes nodes;

	/* Under the lock. */
	struct tw__task_heap tasks;
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

static inline struct tw__task *tw__task_of(struct tw__task_heap_item *item)
{
	return item ? TW__OWNER(struct tw__task, item, item) : NULL;
}

/* Ready again, or for the first time. The lock is held. */
static inline void tw__task_ready(tw_scheduler *scheduler, struct tw__task *task)
{
	TW_ASSERT_TINY_LOCKED(&scheduler->object.lock);
	task->node.state = TW__TASK_READY;
	tw__task_heap_push(&scheduler->tasks, &task->item, task->expiration_ns);
}

/* ------------------------------------------------------------------------ run.c */

/*
 * Drops n users and the lock. If there is something to run, and the host does not know, submits the
 * work, or calls `wanted`. The scheduler may be gone afterwards.
 */
void tw__scheduler_unlock(tw_scheduler *scheduler, uint32_t n);

/* For a cancel or a close. The lock is not held. */
void tw__scheduler_tell(tw_scheduler *scheduler, struct tw__told told, enum tw_fate fate);

/* The work. */
void tw__scheduler_host_called(struct tw__work *work);

#endif
