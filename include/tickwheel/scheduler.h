/*
 * The scheduler: cooperative tasks with priorities.
 *
 * For work that may wait, but not for ever, on a thread that has better things to do: compaction beside requests, prefetching,
 * rendering. Tasks run one after the other, never two at once, in the order of their expirations; between two tasks, and where a task
 * asks for it, the thread goes back to its host as soon as a slice is used up.
 *
 *     static int compact(struct tw_turn *turn, void *arg)
 *     {
 *             struct table *table = arg;
 *             while (table->dirty && (turn->did_timeout || !tw_scheduler_should_yield(turn->scheduler)))
 *                     compact_one_page(table);
 *             return table->dirty ? TW_TURN_AGAIN : TW_TURN_DONE;
 *     }
 *
 *     tw_scheduler_submit(scheduler, TW_PRIORITY_LOW, compact, table, NULL);
 *
 * Order. A task's start is the instant of posting plus its delay; its expiration is its start plus a timeout, its own or that of its
 * priority. Delayed tasks wait by their starts, ready ones by their expirations, equals in the order of posting. So a low task that has
 * waited long enough goes before a fresh normal one, and an immediate one has expired on arrival. An expired task is run whatever the
 * slice, and is told so: did_timeout.
 *
 * Host. The host calls the tasks. It is an executor (by default the service's own), which gets one piece of work for each slice,
 * or a loop of the caller's, with tw_scheduler_run. While no task is ready, one timer of the service waits for the earliest
 * delayed task. The service's driver runs that timer itself, so that blocked workers of the service delay no task of another
 * host. Time is the service's clock; on a manual clock all is exact.
 *
 * Threads. Who may call what, and beside what:
 *
 *   caller                    post*   cancel   pause    stats_get   should_yield   run            close      destroy
 *                                              resume   trace
 *   any thread                yes     yes      yes      yes         false          one at a time  yes        alone
 *   a task of the scheduler   yes     yes      yes      yes         yes            -EBUSY         -EDEADLK   -EDEADLK
 *   a signal handler          no      no       no       no          no             no             no         no
 *
 * No lock is held while a task or a done function runs. A task must not longjmp, throw or end its thread. What a poster wrote before is
 * visible to the task, what a turn wrote to the next one, whichever threads these are.
 *
 * Memory. arg is the task's until its done function has been called, exactly once: after its last turn, on that thread; by whoever
 * cancels it; or by whoever closes. Without one: until its last turn has returned, or cancel has answered TW_CANCELLED, or close 0.
 * A handle is a number, kept as long as one likes; a stale one is harmless. The service, and the executor, must outlive the scheduler:
 * until it is destroyed tw_service_close and tw_pool_close answer -EBUSY.
 *
 * In a forked child each call answers -EPERM (bool: false), but tw_scheduler_destroy, which frees the memory and answers 0; the
 * functions of tw_priority_* work there as anywhere.
 */
#ifndef TICKWHEEL_SCHEDULER_H
#define TICKWHEEL_SCHEDULER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "executor.h"
#include "service.h"
#include "version.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_scheduler tw_scheduler;

/* Handle of a task. All-zero is "no task". */
typedef struct tw_scheduler_task_id {
	uint64_t id;
} tw_scheduler_task_id;

/* With each its timeout, unless the scheduler's config or the task says otherwise. Any other value is taken as normal, none, too. */
enum tw_priority {
	TW_PRIORITY_NONE = 0,
	TW_PRIORITY_IMMEDIATE = 1,     /* -1 ms: has expired on arrival */
	TW_PRIORITY_USER_BLOCKING = 2, /* 250 ms */
	TW_PRIORITY_NORMAL = 3,        /* 5 s */
	TW_PRIORITY_LOW = 4,           /* 10 s */
	TW_PRIORITY_IDLE = 5           /* 1 073 741 823 ms, twelve days */
};

enum { TW_PRIORITIES = 6 };

struct tw_turn;

/* What a turn may return. Any other value is a failure: it ends the task, and the done function gets it. */
enum tw_turn_result {
	TW_TURN_DONE = 0, /* the task has ended */
	TW_TURN_AGAIN = 1 /* the task continues in another turn, with turn->next. If that is NULL, the task is done */
};

/* A task's callback: one turn of it. By custom failures are negative errno values. */
typedef int tw_turn_fn(struct tw_turn *turn, void *arg);

/* What a turn is told. The library's; no longer there when the turn has returned. Later versions may have more members at its end. */
struct tw_turn {
	tw_scheduler *scheduler;
	tw_scheduler_task_id task;
	enum tw_priority priority;
	bool did_timeout; /* the task had expired as the turn began: it should come to its end, and not give way */
	tw_turn_fn *next; /* what TW_TURN_AGAIN calls: this function, unless the turn writes another or NULL */
};

/*
 * Told once of each task that has one, at its end. TW_FATE_FIRED: it ran to its end; result is what its last turn returned: 0, or its
 * failure. TW_FATE_CANCELLED: result is -ECANCELED. TW_FATE_DROPPED: by close; result is -ESHUTDOWN. It may call what a task may.
 */
typedef void tw_scheduler_done_fn(void *arg, enum tw_fate fate, int result);

/* ----------------------------------------------------------- birth and end */

enum tw_scheduler_host {
	TW_HOST_EXECUTOR = 0, /* an executor calls the tasks, a slice at a time */
	TW_HOST_MANUAL = 1    /* the caller does: tw_scheduler_run */
};

/* Zero means default for each knob. */
struct tw_scheduler_config {
	size_t size; /* sizeof(struct tw_scheduler_config); 0 only if all else is 0 too */
	enum tw_scheduler_host host;
	uint32_t max_tasks; /* that may be posted and not ended; 1 .. 2^28; default 1 Mi; memory is taken on demand */
	tw_executor *executor; /* NULL: what runs the service's callbacks. Not for a manual host */
	uint64_t slice_ns;     /* 1 .. 2^62; default 5 ms */

	/*
	 * Timeouts by priority, -2^62 .. 2^62; 0: default (for "at once" take -1). [TW_PRIORITY_NONE] is 0.
	 */
	int64_t timeout_ns[TW_PRIORITIES];

	/*
	 * Manual host only: wakes the caller's loop when tw_scheduler_run has work to do. Called once until the next run, on the
	 * thread that brought the work. For a delayed task that is the service's driver (its tick thread), so the function
	 * must not block. It must not call the scheduler. May be NULL.
	 */
	void (*wanted)(void *wanted_arg);
	void *wanted_arg;

	uint32_t log_events; /* the event log keeps so many, the latest; 0: none; at most 2^24; 32 bytes each */
	uint32_t reserved;   /* 0 */
};

/*
 * Makes a scheduler. cfg may be NULL. *out is written on success only. -EINVAL: service or out NULL, a knob out of range, an executor
 * without sound ops, or one for a manual host, or wanted for another. -E2BIG: cfg->size is larger than the library knows and the tail is
 * not zero. -ENOMEM. -ESHUTDOWN: service or pool are closed.
 */
TW_API int tw_scheduler_create(tw_scheduler **out, tw_service *service, const struct tw_scheduler_config *cfg);

/*
 * Stops: refuses new tasks (-ESHUTDOWN), ends all that are not running as dropped, their done functions told on this thread, and lets the
 * running turn be the last: then waits for it, and for the work that the executor has not begun, at most timeout_ns. Cancels find
 * nothing any more (TW_GONE). Again, or from several threads: allowed. 0: nothing of it runs, or will. -EINVAL: NULL. -ETIMEDOUT: call again.
 * -EDEADLK: called from one of its tasks or done functions; or by a worker of its own pool while it has work there, for which that worker may
 * be needed; nothing has changed then.
 */
TW_API int tw_scheduler_close(tw_scheduler *scheduler, uint64_t timeout_ns);

/*
 * Closes the scheduler, waits for a turn that runs on another thread, and frees the scheduler. NULL is allowed.
 *
 * On a pool the scheduler is gone when this returns. There are three exceptions, in which the call waits only for the turn,
 * because the calling thread may be needed to finish the rest:
 *   - the scheduler's executor is not a pool
 *   - the caller is a worker of the scheduler's pool, or is inside a callback or a task on the service
 *   - the service is driven by hand, and its driver is inside the host timer's callback
 * Then the executor passes over the piece of work that it still holds, and the memory goes with it. tw_service_close waits
 * for that as for a callback.
 *
 * Threads: any. Blocks while a turn runs.
 * Returns:
 *   0          closed, and freed now or with its last piece of work
 *   -EDEADLK   called from one of its tasks or done functions; nothing changed
 */
TW_API int tw_scheduler_destroy(tw_scheduler *scheduler);

/* -------------------------------------------------------------------- post */

/* Posts fn(turn, arg), ready at once. As tw_scheduler_submit_task. */
TW_API int tw_scheduler_submit(tw_scheduler *scheduler, enum tw_priority priority, tw_turn_fn *fn, void *arg,
			       tw_scheduler_task_id *out);

enum tw_scheduler_task_flags {
	TW_SCHEDULER_TASK_TIMEOUT = 1 /* timeout_ns holds, whatever the priority's */
};

/* The full form. Fields left 0 mean: not wanted. */
struct tw_scheduler_task {
	size_t size; /* sizeof(struct tw_scheduler_task) */
	tw_turn_fn *fn;
	void *arg;
	enum tw_priority priority;
	uint32_t flags; /* enum tw_scheduler_task_flags */
	uint64_t
	    delay_ns; /* 0 .. TW_MAX_DELAY_NS: not ready before; rounded up to the service's ticks if nothing else runs */
	int64_t
	    timeout_ns; /* with TW_SCHEDULER_TASK_TIMEOUT: start to expiration, -2^62 .. 2^62; 0 and less: has expired when it starts */
	tw_scheduler_done_fn *done;
	const char *name; /* for the event log; not copied: lives as long as the scheduler */
};

/*
 * Any thread, also from tasks. A clock read and a short lock; memory now and then. *out (may be NULL) is written on success only, before the task
 * can run. 0. -EINVAL: NULL where something is needed, unknown flags, a timeout without its flag. -E2BIG. -ERANGE: delay or timeout.
 * -EAGAIN: max_tasks. -ENOMEM. -ESHUTDOWN: closed.
 */
TW_API int tw_scheduler_submit_task(tw_scheduler *scheduler, const struct tw_scheduler_task *post,
				    tw_scheduler_task_id *out);

/*
 * Any thread; never waits for a turn. TW_CANCELLED: it will not run (again); its done function has been called on this thread.
 * TW_RUNNING: a turn of it runs, or its done function; if it asks for another turn, it ends as cancelled instead. TW_GONE: it
 * has ended, or never was. -EINVAL: scheduler NULL.
 */
TW_API int tw_scheduler_cancel(tw_scheduler *scheduler, tw_scheduler_task_id task);

/* --------------------------------------------------------------------- run */

enum tw_scheduler_run_result {
	TW_SCHEDULER_RUN_IDLE = 0, /* nothing is ready, or it is paused: `wanted` tells when there is something */
	TW_SCHEDULER_RUN_MORE = 1  /* the slice, or the budget, was used up; call again */
};

/*
 * For a manual host: runs what is ready for one slice, at most `budget` turns (TW_NO_LIMIT: no limit), on this thread. Expired tasks run beyond
 * the slice, but not beyond the budget. Reads the clock once, and once after each turn that leaves others waiting. A tw_scheduler_run_result. -EINVAL: NULL, budget 0,
 * or another host. -EBUSY: called from inside itself, or while another thread is in it. -ESHUTDOWN: closed.
 */
TW_API int tw_scheduler_run(tw_scheduler *scheduler, size_t budget);

/*
 * For a turn: should it return soon? The slice is used up, the host wants its thread back, a more urgent task is ready (a delayed one
 * that has come due meanwhile counts), or the scheduler is paused or closed. A task that has timed out need not ask. Costs a clock read and a
 * short lock. False outside of the scheduler's turns.
 */
TW_API bool tw_scheduler_should_yield(tw_scheduler *scheduler);

/*
 * The host wants its thread back: no task that has not expired is begun in this slice any more, and tw_scheduler_should_yield is true; the next slice
 * goes on. Any thread. 0. -EINVAL: NULL.
 */
TW_API int tw_scheduler_request_yield(tw_scheduler *scheduler);

/* Slices of 1 s / fps from now on; 0: the config's again. 0. -EINVAL: NULL, or fps above 1000. */
TW_API int tw_scheduler_force_frame_rate(tw_scheduler *scheduler, uint32_t fps);

/* Begins no further turn, of expired tasks either, until resumed; the one that runs goes on. Any thread. 0. -EINVAL: NULL. */
TW_API int tw_scheduler_pause(tw_scheduler *scheduler);
TW_API int tw_scheduler_resume(tw_scheduler *scheduler);

/* --------------------------------------------------------------- priorities */

/* The calling thread's: that of the task whose turn it is in; TW_PRIORITY_NORMAL outside. */
TW_API enum tw_priority tw_priority_current(void);

/* Calls fn(arg) here and now, with that current priority (an unknown one: normal). fn NULL: nothing. */
TW_API void tw_priority_run(enum tw_priority priority, tw_fn *fn, void *arg);

/* -------------------------------------------------------------- looking on */

/* posted == completed + failed + cancelled + dropped + ready + delayed; all but `turns` and what follows it. */
struct tw_scheduler_stats {
	size_t size; /* in: sizeof(struct tw_scheduler_stats) */

	uint64_t posted;
	uint64_t completed; /* came to their ends with TW_TURN_DONE */
	uint64_t failed;
	uint64_t cancelled;
	uint64_t dropped; /* by close */
	uint64_t ready;   /* the one that runs included */
	uint64_t delayed;

	uint64_t turns;
	uint64_t timed_out;         /* turns with did_timeout */
	uint64_t continued;         /* turns that ended with TW_TURN_AGAIN, and were heeded */
	uint64_t slices;            /* times that the host has called */
	uint64_t host_requests;     /* times that the host was asked to */
	uint64_t timers_armed;      /* times that the host timer was set, or moved */
	uint64_t cleared;           /* cancelled tasks that still take room in a heap */
	uint64_t sweeps;            /* times that these were swept out */
	uint64_t rejected;          /* posts answered -EAGAIN, -ENOMEM or -ESHUTDOWN */
	uint64_t last_failure_task; /* the handle's id; 0: none */
	int64_t last_failure;       /* its result */
	uint64_t host_requested;    /* 1: asked for, and has not called yet */
	uint64_t host_timer;        /* 1: is set */
	uint64_t paused;            /* 1: is */
};

/* A snapshot. Any thread. -EINVAL: NULL, or out->size smaller than one counter. Sizes are dealt with as in tw_service_stats. */
TW_API int tw_scheduler_stats(tw_scheduler *scheduler, struct tw_scheduler_stats *out);

/* ------------------------------------------------------------ the event log */

enum tw_scheduler_event_kind {
	TW_EVENT_START = 1,   /* its first turn begins */
	TW_EVENT_SUSPEND = 2, /* a turn ends with TW_TURN_AGAIN */
	TW_EVENT_RESUME = 3,  /* a further turn begins */
	TW_EVENT_DONE = 4,    /* the last turn has ended */
	TW_EVENT_CANCEL = 5,  /* cancelled, or dropped by close */
	TW_EVENT_ERROR = 6    /* the last turn has failed */
};

struct tw_scheduler_event {
	uint64_t at_ns; /* on the service's clock; of a turn's begin: the reading after the turn before it */
	uint64_t task;  /* its number: 1 for the first that was posted */
	const char *name;
	uint16_t kind; /* enum tw_scheduler_event_kind */
	uint16_t priority;
	int32_t result; /* of TW_EVENT_ERROR */
};

/* Copies the latest events, at most n, the oldest first. How many. -EINVAL: NULL with n not 0. 0 too: there is no log. */
TW_API int tw_scheduler_events(tw_scheduler *scheduler, struct tw_scheduler_event *out, size_t n);

/*
 * Writes the log as a Chrome trace (JSON, traceEvents): each turn a bar, in a row for each priority; cancellings are marks. For chrome://tracing,
 * ui.perfetto.dev or speedscope. Any thread. 0. -EINVAL: NULL. -ENOMEM. -EIO: `out` has an error.
 */
TW_API int tw_scheduler_trace(tw_scheduler *scheduler, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
