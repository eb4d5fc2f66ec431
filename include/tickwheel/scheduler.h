/*
 * The scheduler: cooperative tasks with priorities, for work that may wait.
 *
 * Tasks run one after the other, never two at a time, in the order of their expirations. The thread
 * goes back to its host when a slice is used up, and after each turn that returns TW_TURN_AGAIN.
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
 * Order. A task starts at its submit plus its delay, and expires at its start plus a timeout: its
 * own, or that of its priority. Ready tasks wait in the order of their expirations, equals in the
 * order of their submits. So a low task that has waited long enough goes before a fresh normal one.
 * An expired task sees did_timeout. It may finish in one turn, or ask tw_scheduler_should_yield and
 * go on in turns of a slice each.
 *
 * Host. An executor (by default the service's) gets one piece of work for each slice; or a loop of
 * yours calls tw_scheduler_run. A delayed task is one timer of the service, which makes the task
 * ready on the driver: blocked workers do not delay it. Time is the service's clock.
 *
 * A turn of the host is one slice. It ends
 *
 *   - when no task is ready;
 *   - after a turn that returned TW_TURN_AGAIN, also of an expired task;
 *   - after 1024 turns of tasks;
 *   - when the slice is used up. Then only an expired task may still begin, if it was submitted
 *     before this turn of the host, and fewer than 32 tasks have had a turn in it.
 *
 * What is ready then runs in the next turn of the host, after the host's other work.
 *
 * Who may call what:
 *
 *   caller              submit*  cancel   stats  should_yield run       close     destroy
 *   any thread          yes      yes      yes    false        one       yes       alone
 *   a task of its own   yes      yes      yes    yes          -EBUSY    -EDEADLK  -EDEADLK
 *   a signal handler    no       no       no     no           no        no        no
 *
 * No lock is held while a task or a done function runs. A task must not longjmp, throw or end its
 * thread. It sees what the submitter wrote before, and a turn sees what the turn before it wrote.
 *
 * Memory. arg is the task's until its done function has been called: after its last turn, on that
 * thread; by the canceller; or by the closer. Without one: until its last turn has returned, or a
 * cancel returned TW_CANCELLED, or a close 0. Service and executor must outlive the scheduler:
 * tw_service_close and tw_pool_close return -EBUSY until it is destroyed.
 *
 * In a forked child each call returns -EPERM (bool: false), and destroy frees the memory.
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
 * Priorities, with their timeouts. The scheduler's config or a task may give others. A value that
 * is none of these is taken as normal.
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
 * function.
 */
enum tw_turn_result {
	TW_TURN_DONE = 0, /* the task has ended */
	TW_TURN_AGAIN = 1 /* it goes on with turn->next; NULL: the task is done */
};

/* A task's callback: one turn of it. Let failures be negative errno values. */
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
 * Called once when a task has ended. It may call what a task may.
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

/* Knobs of a scheduler. 0 is the default of each. */
struct tw_scheduler_config {
	size_t size; /* sizeof(struct tw_scheduler_config); 0 only if all else is 0 too */
	enum tw_scheduler_host host;
	uint32_t max_tasks;    /* that have not ended: 1 .. 2^28; default 1 Mi */
	tw_executor *executor; /* NULL: the service's. Not for a manual host */
	uint64_t slice_ns;     /* 1 .. 2^62; default 5 ms */

	/*
	 * Timeouts by priority: -2^62 .. 2^62; 0: default; -1: expires at its start. 0 for
	 * TW_PRIORITY_NONE.
	 */
	int64_t timeout_ns[TW_PRIORITIES];

	/*
	 * Manual host: called once when tw_scheduler_run has work to do, on the thread that brought
	 * the work; for a delayed task, on the driver. It must not block, and must not call the
	 * scheduler.
	 */
	void (*wanted)(void *wanted_arg);
	void *wanted_arg;
};

/*
 * Creates a scheduler. cfg may be NULL.
 *
 * Threads: any.
 * Returns:
 *   0            *out is the scheduler; on an error *out is not written
 *   -EINVAL      service or out is NULL; a knob is out of range; an executor whose ops are
 *                incomplete, or with a manual host; `wanted` with another host
 *   -E2BIG       cfg has non-zero bytes beyond the known struct
 *   -ENOMEM      no memory
 *   -ESHUTDOWN   the service or the pool is closed
 *   -EPERM       in a forked child
 */
TW_API int tw_scheduler_create(tw_scheduler **out, tw_service *service,
			       const struct tw_scheduler_config *cfg);

/*
 * Refuses new tasks, ends those that do not run as dropped, and waits for the running turn, which
 * is its task's last, and for done functions that other threads call.
 *
 * Threads: any, several at a time. Blocks at most timeout_ns, plus the done functions.
 * Calls: done functions of the dropped tasks, on this thread.
 * Returns:
 *   0            nothing of the scheduler runs, or will
 *   -ETIMEDOUT   a turn or a done function still runs, or work waits at the executor: call again
 *   -EDEADLK     called from one of its tasks or done functions; nothing changed
 *   -EINVAL      scheduler is NULL
 *   -EPERM       in a forked child
 */
TW_API int tw_scheduler_close(tw_scheduler *scheduler, uint64_t timeout_ns);

/*
 * Closes the scheduler, waits for a turn or a done function that runs on another thread, and frees
 * the scheduler. NULL is allowed. In a forked child it only frees the memory.
 *
 * On a pool it is gone when the call returns, except if the caller is a worker of that pool or is
 * inside a callback or task of the service. In those cases, and on other executors, the memory goes
 * with the last piece of work that the executor holds; tw_service_close waits for that.
 *
 * Threads: any, with no other call beside it, except for a cancel whose done function has been
 * called. Blocks while a turn or a done function runs.
 * Returns:
 *   0          closed, and freed now or with its last piece of work
 *   -EDEADLK   called from one of its tasks or done functions; nothing changed
 */
TW_API int tw_scheduler_destroy(tw_scheduler *scheduler);

/* ------------------------------------------------------------------ submit */

/*
 * Submits a task that is ready immediately.
 *
 * Threads: any, also tasks. Never blocks.
 * Returns:
 *   0            submitted
 *   -EINVAL      scheduler or fn is NULL
 *   -EAGAIN      max_tasks tasks have not ended: try again, or raise max_tasks
 *   -ENOMEM      no memory
 *   -ESHUTDOWN   the scheduler is closed
 *   -EPERM       in a forked child
 */
TW_API int tw_scheduler_submit(tw_scheduler *scheduler, enum tw_priority priority, tw_turn_fn *fn,
			       void *arg, tw_scheduler_task_id *out);

/* Flags of struct tw_scheduler_task. */
enum tw_scheduler_task_flags {
	TW_SCHEDULER_TASK_TIMEOUT = 1 /* timeout_ns replaces that of the priority */
};

/* A task in full. Members that are 0 are not used. */
struct tw_scheduler_task {
	size_t size; /* sizeof(struct tw_scheduler_task) */
	tw_turn_fn *fn;
	void *arg;
	enum tw_priority priority;
	uint32_t flags;     /* enum tw_scheduler_task_flags */
	uint64_t delay_ns;  /* 0 .. TW_MAX_DELAY_NS; rounded up to ticks of the service */
	int64_t timeout_ns; /* with its flag: start to expiration, -2^62 .. 2^62 */
	tw_scheduler_done_fn *done;
	const char *name; /* for tw_service_dump and _liveness; not copied */
};

/*
 * Submits a task in full.
 *
 * *out (may be NULL) is written before the task can run, and only on success. Costs a clock read, a
 * short lock, and memory now and then.
 *
 * Threads: any, also tasks. Never blocks.
 * Returns:
 *   0            submitted
 *   -EINVAL      scheduler, task or fn is NULL; unknown flags; a timeout without its flag
 *   -E2BIG       non-zero bytes beyond the known struct
 *   -ERANGE      the delay or timeout is out of range
 *   -EAGAIN      max_tasks tasks have not ended, or the service has no room for another timer: try
 *                again, or raise max_tasks or max_timers
 *   -ENOMEM      no memory
 *   -ESHUTDOWN   the scheduler is closed; with a delay: the service closes
 *   -EPERM       in a forked child
 */
TW_API int tw_scheduler_submit_task(tw_scheduler *scheduler, const struct tw_scheduler_task *post,
				    tw_scheduler_task_id *out);

/*
 * Cancels a task.
 *
 * Threads: any. Never waits for a turn.
 * Calls: the done function, on this thread, if the result is TW_CANCELLED.
 * Returns:
 *   TW_CANCELLED   it will not run (again)
 *   TW_RUNNING     a turn or its done function runs now; if the turn asks for another, the task
 *                  ends as cancelled instead
 *   TW_GONE        it has ended, or never was; its done function may still run, if another thread
 *                  cancels it or closes the scheduler
 *   -EINVAL        scheduler is NULL
 *   -EPERM         in a forked child
 */
TW_API int tw_scheduler_cancel(tw_scheduler *scheduler, tw_scheduler_task_id task);

/* --------------------------------------------------------------------- run */

/* Results of tw_scheduler_run. */
enum tw_scheduler_run_result {
	TW_SCHEDULER_RUN_IDLE = 0, /* nothing is ready: `wanted` is called when there is work */
	TW_SCHEDULER_RUN_MORE = 1  /* tasks are ready: call again */
};

/*
 * Runs ready tasks for one turn of the host (see above) on this thread, at most `budget` turns of
 * tasks. For a manual host.
 *
 * Threads: one at a time. Blocks while turns run.
 * Returns:
 *   TW_SCHEDULER_RUN_IDLE   nothing is ready: `wanted` is called when there is work
 *   TW_SCHEDULER_RUN_MORE   the slice or the budget was used up: call again
 *   -EINVAL      scheduler is NULL, budget is 0, or another host
 *   -EBUSY       called from inside itself, or while another thread is in it: run on one thread
 *   -ESHUTDOWN   the scheduler is closed
 *   -EPERM       in a forked child
 */
TW_API int tw_scheduler_run(tw_scheduler *scheduler, size_t budget);

/*
 * Tells a turn whether to return soon.
 *
 * It should if the slice is used up, a more urgent task is ready, or the scheduler is closed.
 *
 * In a turn with did_timeout: only if a full slice has passed since that turn began, or if the
 * scheduler is closed. So an expired task that yields gets on. Costs a clock read and a short lock.
 *
 * Threads: any.
 * Returns: true if it should. False if not, outside of the scheduler's turns, or in a forked child
 */
TW_API bool tw_scheduler_should_yield(tw_scheduler *scheduler);

/* --------------------------------------------------------------- priorities */

/*
 * Returns the calling thread's current priority: that of the task whose turn it runs.
 *
 * Threads: any. Never blocks.
 * Returns: the priority; outside of turns, TW_PRIORITY_NORMAL.
 */
TW_API enum tw_priority tw_priority_current(void);

/* -------------------------------------------------------------- statistics */

/* Gauges and counters. submitted == completed + failed + cancelled + dropped + ready + delayed. */
struct tw_scheduler_stats {
	size_t size; /* in: sizeof(struct tw_scheduler_stats) */

	uint64_t submitted;
	uint64_t completed; /* ended with TW_TURN_DONE */
	uint64_t failed;
	uint64_t cancelled;
	uint64_t dropped; /* by a close */
	uint64_t ready;   /* with the one that runs */
	uint64_t delayed;

	uint64_t turns;
	uint64_t timed_out; /* turns with did_timeout */
	uint64_t continued; /* turns that ended with TW_TURN_AGAIN, and were followed by another */
	uint64_t slices;    /* calls of the host */
	uint64_t host_requests;     /* requests to the host */
	uint64_t timers_armed;      /* timers of delayed tasks that were set */
	uint64_t cleared;           /* cancelled tasks that are still in the heap: 0 */
	uint64_t sweeps;            /* times that these were removed: 0 */
	uint64_t rejected;          /* submits that returned -EAGAIN, -ENOMEM or -ESHUTDOWN */
	uint64_t last_failure_task; /* the handle's id; 0: none */
	int64_t last_failure;       /* its result */
	uint64_t host_requested;    /* 1: a request is under way */
	uint64_t host_timer;        /* 1: a delayed task's timer is set */
};

/*
 * Reads a scheduler's statistics. An older or newer `size` is fine, as with tw_service_stats.
 *
 * Threads: any. Never blocks.
 * Returns:
 *   0         *out is filled
 *   -EINVAL   NULL, or out->size is smaller than one counter
 *   -EPERM    in a forked child
 */
TW_API int tw_scheduler_stats(tw_scheduler *scheduler, struct tw_scheduler_stats *out);

#ifdef __cplusplus
}
#pragma GCC diagnostic pop
#endif
#endif
