/*
 * The scheduler: cooperative tasks with priorities. They run one after the other in the order of
 * their expirations, in slices of the host.
 *
 *     static int compact(struct tw_turn *turn, void *arg)
 *     {
 *             struct table *table = arg;
 *             while (table->dirty && !tw_scheduler_should_yield(turn->scheduler))
 *                     compact_one_page(table);
 *             return table->dirty ? TW_TURN_AGAIN : TW_TURN_DONE;
 *     }
 *
 *     tw_scheduler_submit(scheduler, TW_PRIORITY_LOW, compact, table, NULL);
 *
 * Destroy it before its service and executor are closed (-EBUSY until then). tickwheel_scheduler(7)
 * has order, turns and memory.
 */
#ifndef TICKWHEEL_SCHEDULER_H
#define TICKWHEEL_SCHEDULER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "executor.h"
#include "service.h"
#include "version.h"

#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a struct and a function have one name */
extern "C" {
#endif

typedef struct tw_scheduler tw_scheduler;

/* Handle of a task: a value. All-zero is "no task"; a stale handle is harmless. */
typedef struct tw_scheduler_task_id {
	uint64_t id;
} tw_scheduler_task_id;

/*
 * Priorities, with their timeouts, which the config or a task may replace. Any other value is taken
 * as normal.
 */
enum tw_priority {
	TW_PRIORITY_NONE = 0,
	TW_PRIORITY_IMMEDIATE = 1,     /* -1 ms: expires at its start */
	TW_PRIORITY_USER_BLOCKING = 2, /* 250 ms */
	TW_PRIORITY_NORMAL = 3,        /* 5 s */
	TW_PRIORITY_LOW = 4,           /* 10 s */
	TW_PRIORITY_IDLE = 5           /* 1 073 741 823 ms: twelve days */
};

enum { TW_PRIORITIES = 6 };

struct tw_turn;

/*
 * What a turn returns. Any other value is a failure, which ends the task and goes to its done
 * function. Use negative errno values.
 */
enum tw_turn_result {
	TW_TURN_DONE = 0, /* the task has ended */
	TW_TURN_AGAIN = 1 /* it goes on with turn->next; NULL: the task is done */
};

/*
 * One turn of a task, on the host's thread, which it may block. It must not longjmp, throw or end
 * its thread.
 */
typedef int tw_turn_fn(struct tw_turn *turn, void *arg);

/* What a turn sees, valid until it returns. Later versions may add members at the end. */
struct tw_turn {
	tw_scheduler *scheduler;
	tw_scheduler_task_id task;
	enum tw_priority priority;
	bool did_timeout; /* the task had expired when this turn began */
	tw_turn_fn *next; /* what TW_TURN_AGAIN calls; the turn may write another */
};

/*
 * Called once when a task has ended, on the thread of its last turn, of its canceller or of the
 * closer. It may block.
 *
 *   TW_FATE_FIRED       it ran to its end; result is what its last turn returned: 0 or a failure
 *   TW_FATE_CANCELLED   result is -ECANCELED
 *   TW_FATE_DROPPED     by a close; result is -ESHUTDOWN
 */
typedef void tw_scheduler_done_fn(void *arg, enum tw_fate fate, int result);

/* --------------------------------------------------------------- schedulers */

/* Who calls the tasks. */
enum tw_scheduler_host {
	TW_HOST_EXECUTOR = 0, /* an executor calls the tasks, a slice at a time */
	TW_HOST_MANUAL = 1    /* the caller does: tw_scheduler_run */
};

/* Knobs of a scheduler. */
struct tw_scheduler_config {
	size_t size;
	enum tw_scheduler_host host;
	uint32_t max_tasks;    /* that have not ended: 1 .. 2^28; default 1 Mi */
	tw_executor *executor; /* NULL: the service's. Not for a manual host */
	uint64_t slice_ns;     /* 1 .. 2^62; default 5 ms */

	/* By priority: -2^62 .. 2^62; -1: expires at its start. 0 for TW_PRIORITY_NONE. */
	int64_t timeout_ns[TW_PRIORITIES];

	/*
	 * Manual host: called once when tw_scheduler_run has work to do, on the thread that brought
	 * it, or the driver. It must not block, and must not call the scheduler.
	 */
	void (*wanted)(void *wanted_arg);
	void *wanted_arg;

	/* As of tw_strand_set_name. */
	const char *name;
};

/*
 * Creates a scheduler. cfg may be NULL.
 *
 * Returns:
 *   0            *out is the scheduler
 *   -EINVAL      a knob is out of range; an executor whose ops are incomplete, or with a manual
 *                host; `wanted` with another host
 *   -ENOMEM      no memory
 *   -ESHUTDOWN   the service or the pool is closed
 */
TW_API int tw_scheduler_create(tw_scheduler **out, tw_service *service,
			       const struct tw_scheduler_config *cfg);

/*
 * Refuses new tasks, drops those that do not run, and waits for the running turn, its task's last.
 *
 * Blocks: at most timeout_ns, plus the done functions.
 * Calls: done functions of the dropped tasks, on this thread.
 * Returns:
 *   0            nothing of the scheduler runs, or will
 *   -ETIMEDOUT   a turn or a done function still runs, or work waits at the executor: call again
 *   -EDEADLK     called from one of its tasks or done functions
 */
TW_API int tw_scheduler_close(tw_scheduler *scheduler, uint64_t timeout_ns);

/*
 * Closes the scheduler, waits for a turn or a done function on another thread, and frees it. NULL
 * is allowed.
 *
 * Threads: any, with no other call on it, except for a cancel whose done function has been called.
 * Blocks: while a turn or a done function runs.
 * Returns:
 *   0          closed, and freed now or with its last piece of work
 *   -EDEADLK   called from one of its tasks or done functions
 */
TW_API int tw_scheduler_destroy(tw_scheduler *scheduler);

/* ------------------------------------------------------------------ submit */

/*
 * Submits a task that is ready immediately. out may be NULL.
 *
 * Returns:
 *   0            submitted
 *   -EAGAIN      max_tasks tasks have not ended: try again, or raise max_tasks
 *   -ENOMEM      no memory
 *   -ESHUTDOWN   the scheduler is closed
 */
TW_API int tw_scheduler_submit(tw_scheduler *scheduler, enum tw_priority priority, tw_turn_fn *fn,
			       void *arg, tw_scheduler_task_id *out);

/* Flags of struct tw_scheduler_task. */
enum tw_scheduler_task_flags {
	TW_SCHEDULER_TASK_TIMEOUT = 1 /* timeout_ns replaces that of the priority */
};

/* A task in full. */
struct tw_scheduler_task {
	size_t size;
	tw_turn_fn *fn;
	void *arg;
	enum tw_priority priority;
	uint32_t flags;
	uint64_t delay_ns;  /* 0 .. TW_MAX_DELAY_NS; rounded up to ticks of the service */
	int64_t timeout_ns; /* with its flag: start to expiration, -2^62 .. 2^62 */
	tw_scheduler_done_fn *done;
	const char *name; /* as in struct tw_task */
};

/*
 * Submits a task in full. *out (may be NULL) is written before the task can run, and only on
 * success.
 *
 * Returns: as tw_scheduler_submit, and
 *   -EINVAL      fn is NULL; unknown flags; a timeout without its flag
 *   -ERANGE      the delay or timeout is out of range
 *   -EAGAIN      the service has no room for another timer: raise max_timers
 *   -ESHUTDOWN   with a delay: the service closes
 */
TW_API int tw_scheduler_submit_task(tw_scheduler *scheduler, const struct tw_scheduler_task *post,
				    tw_scheduler_task_id *out);

/*
 * Cancels a task. Never waits for a turn.
 *
 * Calls: the done function, on this thread, if the result is TW_CANCELLED.
 * Returns:
 *   TW_CANCELLED   it will not run (again)
 *   TW_RUNNING     a turn or its done function runs now; if the turn asks for another, the task
 *                  ends as cancelled instead
 *   TW_GONE        it has ended, or never was; its done function may still run on another thread
 */
TW_API int tw_scheduler_cancel(tw_scheduler *scheduler, tw_scheduler_task_id task);

/* --------------------------------------------------------------------- run */

/* Results of tw_scheduler_run. */
enum tw_scheduler_run_result {
	TW_SCHEDULER_RUN_IDLE = 0, /* nothing is ready: `wanted` is called when there is work */
	TW_SCHEDULER_RUN_MORE = 1  /* tasks are ready: call again */
};

/*
 * Runs ready tasks for one turn of the host on this thread, at most `budget` turns of tasks. For a
 * manual host.
 *
 * Threads: one at a time.
 * Blocks: while turns run.
 * Returns:
 *   TW_SCHEDULER_RUN_IDLE   nothing is ready
 *   TW_SCHEDULER_RUN_MORE   the slice or the budget was used up: call again
 *   -EINVAL      budget is 0, or another host
 *   -EBUSY       called from inside itself, or while another thread is in it
 *   -ESHUTDOWN   the scheduler is closed
 */
TW_API int tw_scheduler_run(tw_scheduler *scheduler, size_t budget);

/*
 * Tells a turn whether to return soon: if the slice is used up, a more urgent task is ready, or the
 * scheduler is closed. In a turn with did_timeout: only if a full slice has passed since that turn
 * began, or if the scheduler is closed.
 *
 * Returns: true if it should; false if not, or outside of the scheduler's turns.
 */
TW_API bool tw_scheduler_should_yield(tw_scheduler *scheduler);

/* --------------------------------------------------------------- priorities */

/*
 * Returns the calling thread's current priority: that of the task whose turn it runs.
 *
 * Returns: the priority; outside of turns, TW_PRIORITY_NORMAL.
 */
TW_API enum tw_priority tw_priority_current(void);

/* -------------------------------------------------------------- statistics */

/* Gauges and counters. submitted == completed + failed + cancelled + dropped + ready + delayed. */
struct tw_scheduler_stats {
	size_t size;

	uint64_t submitted;
	uint64_t completed; /* ended with TW_TURN_DONE */
	uint64_t failed;
	uint64_t cancelled;
	uint64_t dropped; /* by a close */
	uint64_t ready;   /* with the one that runs */
	uint64_t delayed;

	uint64_t turns;
	uint64_t timed_out;         /* turns with did_timeout */
	uint64_t continued;         /* turns that another one followed */
	uint64_t slices;            /* calls of the host */
	uint64_t host_requests;     /* requests to the host */
	uint64_t timers_armed;      /* for delayed tasks */
	uint64_t cleared;           /* 0 */
	uint64_t sweeps;            /* 0 */
	uint64_t rejected;          /* submits */
	uint64_t last_failure_task; /* the handle's id; 0: none */
	int64_t last_failure;       /* its result */
	uint64_t host_requested;    /* 1: a request is outstanding */
	uint64_t host_timer;        /* 1: a delayed task's timer is set */
};

/*
 * Reads a scheduler's statistics.
 *
 * Returns:
 *   0         *out is filled
 *   -EINVAL   out->size is smaller than one counter
 */
TW_API int tw_scheduler_stats(tw_scheduler *scheduler, struct tw_scheduler_stats *out);

#ifdef __cplusplus
}
#pragma GCC diagnostic pop
#endif
#endif
