/*
 * The inside of schedulers (contract: tickwheel/scheduler.h).
 *
 *     scheduler.c   config, creation, end, statistics
 *     host.c        the host timer; requests of turns
 *     submit.c      submit and cancel; the two heaps
 *     run.c         the loop, what a turn may ask, a thread's current priority
 *
 * One mutex guards all. No user function and no hand-over to an executor happens under it. The
 * service's timers are scheduled, moved and cancelled under it, which never runs anything.
 *
 * Host: IDLE -> REQUESTED (by the thread that brings work; the work goes to the executor, once) ->
 * RUNNING (the executor's thread, or tw_scheduler_run) -> REQUESTED ("more work") or IDLE.
 *
 * Invariants, whenever the lock is free:
 *
 *   SCHEDULER1  The task heap holds something, not closed: REQUESTED or RUNNING.
 *   SCHEDULER2  IDLE, the task heap empty and the timer heap not: the host timer is set for its
 *       head, or `retry` is out, or the timer's callback is about to take the lock.
 *   SCHEDULER3  The host timer is set only while the task heap is empty.
 *   SCHEDULER4  The task heap has room for all that are delayed: promotion cannot fail.
 */
#ifndef TW_EXECUTOR_SCHEDULER_H
#define TW_EXECUTOR_SCHEDULER_H

#include "executor/base/bell.h"
#include "executor/pool/layer.h"
#include "executor/base/heap.h"
#include "executor/base/handles.h"
#include "tickwheel/scheduler.h"
#include "wheel/core/ticks.h"

struct tw__task {
	struct tw__node node;
	struct tw__heap_item item; /* id: its number */
	tw_turn_fn *fn;            /* NULL: running, or cleared */
	void *arg;
	tw_scheduler_done_fn *done;
	void *context; /* of the submitter (wheel/core/context.h) */
	const char *name;
	int64_t expiration_ns;
	uint8_t priority;
	bool running;
	bool cancelled; /* while running */
	bool delayed;   /* in the timer heap */
};

/* Which done function to call when the lock is free. All zero: none. */
struct tw__deferred_done {
	tw_scheduler_done_fn *done;
	void *arg, *context;
};

enum { TW__SCHEDULER_SPARES = 2048 };

enum tw__host_state { TW__HOST_IDLE, TW__HOST_REQUESTED, TW__HOST_RUNNING };

struct tw__host {
	enum tw__host_state state;
	bool retrying;
	bool timer_set;
	tw_timer timer;
	int64_t timer_ns;
	uint32_t
	    /*
	     * timers whose callbacks will come or run, stale ones too; a retry that runs; calls of
	     * `wanted`; done functions that a cancel or a close calls
	     */
	    out;
};

struct tw_scheduler {
	struct tw__base base;
	struct tw__nodes nodes;
	struct tw_scheduler_config config; /* constant, complete */
	struct tw__work work;              /* the host callback; not used with a manual host */
	/* through the driver, when the host timer could not be set */
	struct tw__work retry;

	/* Under the lock. */
	pthread_mutex_t lock;
	/* closed, and something has returned: host, timer or retry */
	struct tw__bell returned;
	struct tw__heap tasks, timers; /* loose */
	/* nodes for later tasks, linked by arg: at most TW__SCHEDULER_SPARES */
	struct tw__task *spare;
	uint32_t spares;
	uint64_t last_number;
	struct tw__host host;
	bool closed;
	uint32_t timers_cleared; /* of stats.cleared, those in the timer heap */
	struct tw__task *current;
	int64_t slice_begin_ns, turn_begin_ns;
	uint64_t slice_last_number;      /* last_number when the slice began */
	struct tw_scheduler_stats stats; /* ready: not kept here; delayed: neither; cleared: is */
};

static inline struct tw__deferred_done tw__deferred_done_of(const struct tw__task *task)
{
	return (struct tw__deferred_done){task->done, task->arg, task->context};
}

static inline int64_t tw__scheduler_now(const tw_scheduler *scheduler)
{
	return (int64_t)tw__clock_read(scheduler->base.service);
}

static inline struct tw__task *tw__task_of(struct tw__heap_item *item)
{
	return item ? TW__OWNER(struct tw__task, item, item) : NULL;
}

static inline enum tw_priority tw__priority_known(enum tw_priority priority)
{
	unsigned number = (unsigned)priority;
	return number >= TW_PRIORITY_IMMEDIATE && number <= TW_PRIORITY_IDLE ? priority
									     : TW_PRIORITY_NORMAL;
}

static inline bool tw__task_is_cleared(const struct tw__task *task)
{
	return !task->fn && !task->running;
}

/* ----------------------------------------------------- scheduler.c, under the lock */

/*
 * Something may have returned: wakes threads that wait in close, and releases the lock. A destroyed
 * scheduler may be gone afterwards.
 */
void tw__scheduler_unlock_returned(tw_scheduler *scheduler);

#endif
