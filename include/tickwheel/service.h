/*
 * The timer service: create, schedule, move, cancel, close.
 *
 * tickwheel.h has the rules that all calls share: who may call what, how a timer ends, when arg may
 * be freed.
 */
#ifndef TICKWHEEL_SERVICE_H
#define TICKWHEEL_SERVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "executor.h"
#include "version.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_service tw_service;
struct tw_service_liveness; /* stats.h */

/* A callback. It must not longjmp, throw or end its thread. */
typedef void tw_fn(void *arg);

/*
 * Handle of a timer: a value, copied freely and kept as long as you like. All-zero is "no timer". A
 * stale handle is harmless (G5).
 */
typedef struct tw_timer {
	uint64_t id;
} tw_timer;

/* Handle of a group of timers (group.h), a value. All-zero is "no group". */
typedef struct tw_group {
	uint64_t id;
} tw_group;

/* As a timeout: without limit. */
#define TW_FOREVER UINT64_MAX

/* As when_ns of a persistent timer: not armed yet. */
#define TW_NEVER UINT64_MAX

/* As a budget: no limit. */
#define TW_NO_LIMIT SIZE_MAX

/* The longest delay, and the latest deadline after the service's creation: 146 years. */
#define TW_MAX_DELAY_NS (UINT64_C(1) << 62)

/* Answers of cancels and of tw_disarm. tickwheel.h says after which of them arg may be freed. */
enum tw_outcome {
	TW_CANCELLED =
	    0,           /* it was not claimed, and will not run (again); one canceller gets this */
	TW_GONE = 1,     /* it has ended, or never was */
	TW_RUNNING = 2,  /* its callback or its release is running */
	TW_FINISHED = 3, /* tw_cancel_wait: it was running, and has returned */
	TW_SELF = 4,     /* tw_cancel_wait: called from its own callback or release */
	TW_DISARMED = 5  /* tw_disarm: it is disarmed already, and does not run */
};

/* How a timer ended, for its release. tickwheel.h has the table. */
enum tw_fate {
	TW_FATE_FIRED = 0,
	TW_FATE_CANCELLED = 1,
	TW_FATE_DROPPED = 2, /* by a close, or by TW_REFUSED_DROP */
	TW_FATE_LATE = 3     /* by TW_LATE_DROP */
};

/* Called once when a timer has ended: the place to free arg. */
typedef void tw_release_fn(void *arg, enum tw_fate fate);

/* ------------------------------------------------------------------ service */

/* Which thread drives a service. */
enum tw_drive {
	TW_DRIVE_THREAD = 0, /* a tick thread of the service */
	TW_DRIVE_MANUAL = 1  /* the caller, with tw_service_advance */
};

/*
 * What happens to runs that an executor refuses.
 *
 * tw_service_stats.refused counts each refusal. A run that waits for its executor for more than
 * 2^26 ticks (18.6 hours at 1 ms) may wait 2^25 ticks more: late, never early.
 */
enum tw_on_refused {
	TW_REFUSED_RETRY = 0,  /* offered again in the next tick, in order; cancellable meanwhile */
	TW_REFUSED_INLINE = 1, /* run by the driver */
	TW_REFUSED_DROP =
	    2 /* ended as dropped; the driver calls the release, which must be short */
};

/* Knobs of a service. 0 is the default of each. */
struct tw_service_config {
	size_t size;           /* sizeof(struct tw_service_config); may be 0 if all else is 0 */
	uint64_t tick_ns;      /* resolution: 50 us .. 1 s; default 1 ms */
	uint32_t buckets;      /* of the first wheel: a power of two, 64 .. 65536; default 4096 */
	uint32_t max_timers;   /* 1 .. 2^28; default 16 Mi. Each thread may add up to 256 */
	uint32_t lane_entries; /* entries of one thread that wait for the driver: 1024 .. 2^30;
				* default 1 Mi */
	uint32_t workers;      /* threads that the service's own pool keeps: 1 .. 1024; default: the
				* processors that the process may use (affinity and control
				* groups). 0 with an executor */
	enum tw_drive drive;
	enum tw_on_refused on_refused;
	tw_clock *clock;       /* NULL: the process's default (clock.h). Outlives the service */
	tw_executor *executor; /* NULL: a pool of its own. Outlives the service */

	/* Threads of the service. */
	const char
	    *thread_name;     /* prefix, at most 9 bytes; default "tw" (tick thread: "tw-tick") */
	size_t stack_size;    /* bytes; default: the system's; 512 KiB under mlockall */
	const void *affinity; /* a cpu_set_t of affinity_size bytes, copied; NULL: inherited */
	size_t affinity_size;
	int sched_policy;   /* of the tick thread: SCHED_OTHER (default), SCHED_FIFO, SCHED_RR */
	int sched_priority; /* not 0 for SCHED_FIFO and SCHED_RR; else 0 */

	/*
	 * Watchdog: on_stuck is called once for each run of any kind that has lasted stuck_ns. It
	 * is also called once for a pool that has had runs waiting for stuck_ns, while all its
	 * max_workers workers were inside runs (seen->pool_at_max). Set both stuck_ns and on_stuck,
	 * or neither.
	 *
	 * on_stuck runs on the driver. It must be short, and must not wait for the driver. Only a
	 * tick thread wakes up for it. A driver that is itself stuck calls nothing: let another
	 * thread ask tw_service_liveness. Costs a clock read for each run that is no timer.
	 */
	uint64_t stuck_ns; /* default 0: no watchdog */
	void (*on_stuck)(void *stuck_arg, const struct tw_service_liveness *seen);
	void *stuck_arg;

	/*
	 * Seed for jitter. 0 picks a random one. With a seed, the draws of each thread depend on
	 * the order in which threads first use the service.
	 */
	uint64_t seed;

	/*
	 * The most threads of the service's own pool: `workers` .. 1024; default 64. While
	 * callbacks block, the pool starts threads beyond `workers` (pool.h). Set both to 1 to run
	 * callbacks one after the other.
	 */
	uint32_t max_workers;
	uint32_t reserved; /* 0 */

	/*
	 * For people: tw_service_dump and tickwheel-top show it, and Prometheus' text has it as the
	 * label `service`. Not copied: a static string.
	 */
	const char *name;
};

/*
 * Creates a service. cfg may be NULL.
 *
 * Threads: any.
 * Returns:
 *   0            *out is the service; on an error *out is not written
 *   -EINVAL      out is NULL; a knob is out of range; workers or max_workers with an executor
 *   -E2BIG       cfg has non-zero bytes beyond the known struct
 *   -ENOMEM      no memory, or no address space for max_timers
 *   -EAGAIN      a thread cannot be created: a limit of threads, of address space or, after
 *                mlockall, of locked memory. The misuse hook gets a text with these limits
 *   -EPERM       the scheduling policy is not permitted; or clock or pool belong to the parent of a
 *                forked child
 *   -ESHUTDOWN   the executor is a closed pool
 *   -EMFILE, -ENFILE, -ENOSPC   no descriptors for a tick thread on tw_clock_boottime()
 */
TW_API int tw_service_create(tw_service **out, const struct tw_service_config *cfg);

/* What a close does with what is pending. */
enum tw_close_mode {
	TW_CLOSE_DROP = 0, /* ends it as dropped */
	TW_CLOSE_RUN = 1,  /* runs it once, now; tw_current says `closing` in it */
	TW_CLOSE_DRAIN = 2 /* waits until it has run in its time */
};

/*
 * Closes the service: refuses new work, ends the old, waits for callbacks, ends the threads.
 *
 * What becomes of a timer:
 *
 *   mode    pending                   queued at its executor    claimed, or running
 *   DROP    dropped, on this thread   dropped, on this thread   its run is the last
 *   RUN     runs once, now            runs                      its run is the last
 *   DRAIN   runs in its time; a       runs                      its run is the last
 *           series ends after it
 *
 * At the timeout (the answer is -ETIMEDOUT), and after it:
 *
 *   mode    pending, or queued             claimed, or running
 *   DROP    none is left                   goes on; its release follows on its thread
 *   RUN     stays pending: call again      goes on; its release follows on its thread
 *   DRAIN   dropped, on this thread        goes on; its release follows on its thread
 *
 * Two closes at a time. Thread A drains without a timeout, then thread B closes with TW_CLOSE_DROP:
 * B drops what A waits for, and both answer 0.
 *
 *   - A background timer goes on during a drain, and is dropped when the last other timer has
 *     ended.
 *   - A disarmed timer holds up no close. It is dropped with the last others. An armed persistent
 *     timer runs once more at most, and ends.
 *   - A member of a cancelled group ends as cancelled. Completions of groups have been called when
 *     the answer is 0.
 *   - Of several closes the strictest mode holds for all: DROP before RUN before DRAIN. The latest
 *     call does the work, the others wait for it.
 *   - TW_CLOSE_DROP with timeout 0 answers 0 if no callback runs: the tick thread gets 0.1 s.
 *   - The handles stay valid; tw_cancel answers TW_GONE.
 *
 * Threads: any, but no callback, release or visitor of the service. Blocks at most timeout_ns, plus
 * 1 s for runs after a drain. An inline callback that does not return holds up the call, and so
 * does an exit handler (pthread_key_create) of a service's thread.
 * Calls: releases and visitors of dropped timers, on this thread.
 * Returns:
 *   0            closed: nothing is pending, no callback runs, the threads have ended
 *   -ETIMEDOUT   callbacks still run, or wait for their executor; the service stays closed: call
 *                again, or destroy the service, which waits without limit
 *   -EBUSY       a strand, scheduler, limiter or the like still uses it: destroy that first;
 *                nothing changed
 *   -EDEADLK     called from inside; or by the only thread that could run what is left (a pool with
 *                max_workers 1, a strand); or a drain with timers pending on a manual clock;
 *                nothing changed
 *   -ENOTSUP     the kernel refuses membarrier, which it granted at creation (a sandbox entered
 *                meanwhile): nothing changed; enter the sandbox before you create the service
 *   -EINVAL      service is NULL; an unknown mode
 */
TW_API int tw_service_close(tw_service *service, enum tw_close_mode mode, uint64_t timeout_ns);

enum tw_close_flags {
	/*
	 * Does not wait for runs on other threads, nor for the service's threads. The answer 0 then
	 * means: nothing is pending, and no further run is claimed. Each worker may still start or
	 * finish the one run that it had claimed, followed by its release. A later close without
	 * this flag, or tw_service_destroy, waits for them.
	 */
	TW_CLOSE_FLAG_NO_WAIT = 1
};

/*
 * A visitor of timers: tw_service_foreach calls it for each pending timer, a close for each timer
 * that it drops.
 *
 * fn and arg are what the timer would have called. remaining_ns is the time until it is due (0:
 * due; UINT64_MAX: disarmed), a hint. A visitor that returns non-zero is not called again by the
 * same call.
 */
typedef int tw_visit_fn(void *visitor_arg, tw_timer timer, tw_fn *fn, void *arg,
			uint64_t remaining_ns);

/* A close in full. */
struct tw_close_options {
	size_t size; /* sizeof(struct tw_close_options) */
	enum tw_close_mode mode;
	uint32_t flags; /* enum tw_close_flags */
	uint64_t timeout_ns;

	/*
	 * Called for each timer that this call drops, before the timer's release, on the same
	 * thread. NULL: not wanted. tw_self() is the timer. The visitor may call what a release
	 * may.
	 */
	tw_visit_fn *dropped;
	void *visitor_arg;
};

/*
 * Closes the service as `options` say.
 *
 * Threads, blocks, calls: as tw_service_close.
 * Returns: as tw_service_close, and
 *   -EINVAL   options is NULL; unknown flags
 *   -E2BIG    non-zero bytes beyond the known struct
 */
TW_API int tw_service_close_with(tw_service *service, const struct tw_close_options *options);

/*
 * Frees the service. NULL is allowed. Closes it with TW_CLOSE_DROP if need be, and waits without
 * limit.
 *
 * Threads: any, with no other call on the service beside it.
 * Calls: releases of dropped timers, on this thread. In a forked child: none.
 * Returns:
 *   0          freed
 *   -EBUSY     a strand, scheduler, limiter or the like still uses it; nothing changed: destroy
 *              that first
 *   -EDEADLK   called from inside, or by the only thread that could run what is left; nothing
 *              changed
 */
TW_API int tw_service_destroy(tw_service *service);

/*
 * Reads the service's clock: nanoseconds, the scale of deadlines.
 *
 * It never falls by more than a tick: while a manual clock is set back it stands still.
 *
 * Threads: any. Never blocks.
 * Returns: the time; 0 if service is NULL, or in a forked child.
 */
TW_API uint64_t tw_service_now(const tw_service *service);

/* ----------------------------------------------------------------- schedule */

/*
 * Schedules fn(arg) to run once, after delay_ns.
 *
 * fn runs on the executor, never inside this call. It starts no sooner than delay_ns after the call
 * (G1). A delay of 0 is a delay like any other, so the run comes within 2 ticks (G2). *out (may be
 * NULL) is written before the timer is published: its callback may read it. fn sees what the caller
 * wrote before. On an error nothing is scheduled, and *out is "no timer" (untouched after -EINVAL).
 *
 * Threads: any, also from callbacks. Never blocks. Allocates now and then, when the service grows.
 * Returns:
 *   0            scheduled
 *   -EINVAL      service or fn is NULL
 *   -ERANGE      the delay, deadline or period is above TW_MAX_DELAY_NS
 *   -EAGAIN      max_timers timers exist, or lane_entries entries of this thread wait for the
 *                driver: raise the knob, or try again after the driver has run
 *   -ENOMEM      no memory
 *   -ESHUTDOWN   the service is closed
 *   -EPERM       in a forked child
 */
TW_API int tw_schedule(tw_service *service, uint64_t delay_ns, tw_fn *fn, void *arg, tw_timer *out);

/*
 * Schedules fn(arg) to run once, at an instant on the scale of tw_service_now.
 *
 * The call reads no clock. The run comes within 1 tick of the deadline; a deadline in the past is
 * due immediately.
 *
 * Threads, returns: as tw_schedule.
 */
TW_API int tw_schedule_at(tw_service *service, uint64_t deadline_ns, tw_fn *fn, void *arg,
			  tw_timer *out);

enum tw_period_mode {
	TW_FIXED_RATE = 0, /* run n is due at first + n * period */
	TW_FIXED_DELAY = 1 /* the next run is due a period after the last one has returned */
};

/*
 * What a fixed-rate series does when instants have passed during a run.
 *
 * A period of 10 ms, and one run of 35 ms that starts at 10 ms and returns at 45 ms. The instants
 * 20, 30 and 40 have passed:
 *
 *   TW_MISSED_SKIP       next run at 50, overruns 3; then 60, 70 ...
 *   TW_MISSED_COALESCE   a run at 45 for the instant 40, overruns 2; then 50, 60 ...
 *   TW_MISSED_BURST      runs at 45 for 20, 30 and 40, overruns 0; then 50, 60 ...
 *
 * With BURST a series whose runs take longer than its period falls behind without limit, unless
 * max_lateness_ns and TW_LATE_DROP bound it.
 */
enum tw_missed_policy { TW_MISSED_SKIP = 0, TW_MISSED_COALESCE = 1, TW_MISSED_BURST = 2 };

/* A series. Its runs never overlap. tw_current tells a run how many instants were missed. */
struct tw_period {
	size_t size;        /* sizeof(struct tw_period) */
	uint64_t first_ns;  /* delay of the first run; 0: immediately */
	uint64_t period_ns; /* 1 .. TW_MAX_DELAY_NS; may be less than a tick */
	enum tw_period_mode mode;
	uint64_t count; /* runs after which the series ends; 0: it goes on without limit */
	enum tw_missed_policy missed;
	uint32_t reserved; /* 0 */
};

/*
 * Schedules a series. The handle stays the same over all its runs. enum tw_missed_policy says which
 * runs follow if one takes longer than the period.
 *
 * Threads: as tw_schedule.
 * Returns: as tw_schedule, and
 *   -EINVAL   period is NULL; period_ns is 0; an unknown mode or policy
 */
TW_API int tw_schedule_every(tw_service *service, const struct tw_period *period, tw_fn *fn,
			     void *arg, tw_timer *out);

enum tw_task_flags {
	TW_TASK_AT = 1, /* when_ns is a deadline on the scale of tw_service_now, not a delay */
	TW_TASK_CONTEXT =
	    2, /* the context is `context`, not that of the calling thread (context.h) */

	/*
	 * A background timer: TW_CLOSE_DRAIN does not wait for it, and drops it when the last other
	 * timer has ended. A series must have no `count`.
	 */
	TW_TASK_BACKGROUND = 4,

	/*
	 * A persistent timer: after a run it is disarmed, not ended. tw_reset arms it again, with
	 * the same handle, tw_disarm disarms it, tw_cancel ends it. No series. See tw_disarm.
	 */
	TW_TASK_PERSISTENT = 8
};

/* What happens to a run that would start more than max_lateness_ns late. */
enum tw_late_policy {
	TW_LATE_RUN = 0, /* it runs; tw_current says `late` in it */
	TW_LATE_DROP = 1 /* it does not run. A one-shot ends with TW_FATE_LATE; a series goes on */
};

/* A timer in full. Members that are 0 are not used. */
struct tw_task {
	size_t size; /* sizeof(struct tw_task) */
	tw_fn *fn;
	void *arg;
	uint64_t when_ns;  /* delay, or deadline with TW_TASK_AT; 0 for a series without TW_TASK_AT;
			 * TW_NEVER with TW_TASK_PERSISTENT: disarmed, without jitter_ns */
	uint32_t flags;    /* enum tw_task_flags */
	uint32_t reserved; /* 0 */
	const struct tw_period
	    *period; /* a series; read during the call. first_ns is 0 with TW_TASK_AT */

	/* Called once when the timer has ended. tickwheel.h says on which thread. */
	tw_release_fn *release;

	/* Runs this timer in place of the service's executor. It must outlive the service. */
	tw_executor *executor;

	/*
	 * The most that a run may start after its deadline; 0: no limit. Rounding to ticks and the
	 * hand-over count, so a limit below three ticks is seldom kept. A series judges each run
	 * alone.
	 */
	uint64_t max_lateness_ns;

	/*
	 * The timer may be due up to this much later, to share a wake-up: 0 .. TW_MAX_DELAY_NS. It
	 * gets the roundest tick in that span. A reset and each run of a series choose anew.
	 */
	uint64_t slack_ns;

	/*
	 * Adds a random time of 0 .. jitter_ns, drawn once: 0 .. TW_MAX_DELAY_NS. It moves the
	 * first instant of a series, and so the phase of all. A reset adds none.
	 */
	uint64_t jitter_ns;
	enum tw_late_policy late; /* 0 without max_lateness_ns */
	uint32_t reserved_late;   /* 0 */

	tw_group group; /* the timer becomes a member; {0}: of none */

	/*
	 * With TW_TASK_CONTEXT: the context of callback and release; NULL: none. Where hooks are
	 * set, it must be what their capture returns, and belongs to the timer after a success.
	 */
	void *context;

	/* For people: tw_service_dump and the watchdog show it. Not copied: a static string. */
	const char *name;
};

/*
 * Schedules a timer in full.
 *
 * Threads: as tw_schedule.
 * Returns: as tw_schedule, and
 *   -EINVAL      task is NULL, or its size too small; unknown flags or policies; an executor
 *                without sound ops
 *   -ERANGE      the deadline with jitter and slack added is out of range
 *   -E2BIG       non-zero bytes beyond the known struct
 *   -ESHUTDOWN   the group is closed
 *   -ENOENT      the group was destroyed
 */
TW_API int tw_schedule_task(tw_service *service, const struct tw_task *task, tw_timer *out);

/*
 * Schedules n timers, all or none, in array order (G6).
 *
 * It costs a fraction of n calls: at most one clock read and one wake-up. The elements are
 * tasks[0].size apart, and all have that size. out is NULL, or has room for n handles, which are
 * written before any timer is published. Beside a close, all are part of it, or none is scheduled.
 *
 * Threads: as tw_schedule. A close waits for the call.
 * Returns: as tw_schedule_task, for the first bad task it finds; tw_service_stats.rejected counts
 * n.
 *   0         all are scheduled; or n is 0
 *   -EINVAL   sizes that differ; TW_TASK_PERSISTENT
 *   -EAGAIN   n is more than max_timers or lane_entries leave room for: schedule fewer, or raise
 *             the knob
 */
TW_API int tw_schedule_bulk(tw_service *service, const struct tw_task *tasks, size_t n,
			    tw_timer *out);

/* -------------------------------------------------------------------- reset */

/*
 * Moves an armed timer to delay_ns from now. The handle stays valid.
 *
 * A move to later is one compare-and-swap. A move to earlier also queues an entry. A move to the
 * tick that the timer has already changes nothing, and orders nothing. A reset of a fixed-rate
 * series moves its phase. From the timer's own callback it re-arms the timer after the callback
 * returns, a one-shot too; the delay counts from the call.
 *
 * A persistent timer that is disarmed is armed. If its callback is running, on any thread, the
 * timer is armed when the callback has returned; of several such calls the last one counts.
 *
 * Threads: any. Never blocks.
 * Returns:
 *   0            moved, or armed
 *   -ENOENT      the timer has ended, or its release runs
 *   -EBUSY       its callback is running on another thread: reset it there, or schedule another.
 *                Not of a persistent timer
 *   -ECANCELED   the callback is running, and the timer was cancelled: it ends
 *   -ERANGE      the delay or deadline is above TW_MAX_DELAY_NS
 *   -EAGAIN, -ENOMEM   no room for an entry, which a move to earlier and a first arming need;
 *                nothing changed: try again
 *   -ESHUTDOWN   the service is closed
 *   -EINVAL      service is NULL
 *   -EPERM       in a forked child
 */
TW_API int tw_reset(tw_service *service, tw_timer timer, uint64_t delay_ns);

/*
 * Moves an armed timer to an instant on the scale of tw_service_now. Reads no clock.
 *
 * Threads, returns: as tw_reset.
 */
TW_API int tw_reset_at(tw_service *service, tw_timer timer, uint64_t deadline_ns);

/* Answer of tw_reset_earlier: the timer is due no later than that already. */
enum { TW_RESET_KEPT = 1 };

/*
 * Moves an armed timer to delay_ns from now, but only if that is earlier.
 *
 * Comparison and move are one step: of several threads, the one with the earliest deadline wins.
 * Use it where several causes share one timer, such as a flush with the shortest of many delays.
 * Deadlines are compared in ticks, and for a timer with slack, where its slack puts them.
 *
 * From the timer's own callback it re-arms a one-shot, unless the callback has re-armed the timer
 * for that time or earlier. A series then runs next at the earlier of its own instant and this one.
 * A persistent timer that is not armed is armed.
 *
 * Threads: any. Never blocks.
 * Returns: as tw_reset, and
 *   0               moved to earlier, or re-armed
 *   TW_RESET_KEPT   not moved: the timer is due at that tick, or before
 */
TW_API int tw_reset_earlier(tw_service *service, tw_timer timer, uint64_t delay_ns);

/*
 * Moves an armed timer to an instant on the scale of tw_service_now, but only if that is earlier.
 * Reads no clock.
 *
 * Threads, returns: as tw_reset_earlier.
 */
TW_API int tw_reset_earlier_at(tw_service *service, tw_timer timer, uint64_t deadline_ns);

/* ------------------------------------------------------------------- disarm */

/*
 * Disarms a persistent timer: it does not run until tw_reset arms it again. The handle stays valid.
 *
 * A persistent timer (TW_TASK_PERSISTENT) serves an object for its life: create it once, arm and
 * disarm it as often as you like, and end it once with tw_cancel.
 *
 *     struct tw_task task = TW_INIT(tw_task);
 *     task.fn = on_idle;
 *     task.arg = connection;
 *     task.flags = TW_TASK_PERSISTENT;
 *     task.when_ns = TW_NEVER;
 *     tw_schedule_task(service, &task, &connection->idle);
 *     ...
 *     tw_reset(service, connection->idle, 30 * TW_SECOND);     the client is silent
 *     tw_disarm(service, connection->idle);                    a request has come
 *     ...
 *     tw_cancel_wait(service, connection->idle, TW_FOREVER);   the connection ends
 *
 * It costs one compare-and-swap, and so does the arming that follows, unless that is for an earlier
 * time than the last one. The timer takes its slot until it ends. Its release is called once, when
 * it ends. If a disarm comes too late, the callback runs; an arming that came during that run is
 * taken back.
 *
 * Threads: any, also its own callback. Never blocks.
 * Returns:
 *   TW_CANCELLED   it was armed, and will not run until it is armed again; one caller gets this
 *   TW_DISARMED    it was not armed, and does not run
 *   TW_RUNNING     the callback runs now, and the timer is disarmed afterwards; or its release runs
 *   TW_GONE        the timer has ended, or never was
 *   -EINVAL        service is NULL; the timer is not persistent
 *   -EPERM         in a forked child
 */
TW_API int tw_disarm(tw_service *service, tw_timer timer);

/* ------------------------------------------------------------------- cancel */

/*
 * Cancels a timer, unless a worker has claimed its run.
 *
 * It wins also when the timer has expired and waits in the pool's queue (G4).
 *
 * Threads: any. Never blocks.
 * Calls: the release, on this thread, if the answer is TW_CANCELLED.
 * Returns:
 *   TW_CANCELLED   the callback will not run (again)
 *   TW_RUNNING     the callback or the release runs now. A series or a persistent timer ends after
 *                  it; a one-shot cannot be re-armed
 *   TW_GONE        the timer has ended, or never was
 *   -EINVAL        service is NULL
 *   -EPERM         in a forked child
 */
TW_API int tw_cancel(tw_service *service, tw_timer timer);

/*
 * Cancels a timer, and waits for its callback and release if they run.
 *
 * After any answer except TW_RUNNING and TW_SELF nothing of the timer runs, and what the callback
 * wrote is visible. arg may be freed, unless the timer's release has freed it. Two callbacks that
 * wait for each other wait without limit.
 *
 * Threads: any. Blocks at most timeout_ns.
 * Calls: as tw_cancel.
 * Returns: as tw_cancel, and
 *   TW_FINISHED    it was running, and has returned
 *   TW_RUNNING     it still runs after timeout_ns
 *   TW_SELF        called from its own callback or release; it will not run again
 */
TW_API int tw_cancel_wait(tw_service *service, tw_timer timer, uint64_t timeout_ns);

/*
 * Tells whether a timer waits to run. A disarmed one does not. Another thread may change that in
 * the same moment.
 *
 * Threads: any. Never blocks.
 * Returns: true if it does; false if not, or if service is NULL.
 */
TW_API bool tw_is_pending(tw_service *service, tw_timer timer);

/*
 * Tells the time until a timer is due, exact to the tick. Another thread may change that in the
 * same moment.
 *
 * Threads: any. Never blocks.
 * Returns:
 *   0          *out_ns is written; 0 means that the timer is due
 *   -ENOENT    the timer is not pending
 *   -EINVAL    service or out_ns is NULL
 *   -EPERM     in a forked child
 */
TW_API int tw_remaining(tw_service *service, tw_timer timer, uint64_t *out_ns);

/* ------------------------------------------------- from inside a callback */

/*
 * Returns the timer whose callback or release the calling thread runs.
 *
 * Threads: any. Never blocks.
 * Returns: the timer; outside of callbacks and releases, "no timer".
 */
TW_API tw_timer tw_self(void);

/* What the calling thread runs. Later versions may add members at the end. */
struct tw_run_info {
	size_t size;    /* in: sizeof(struct tw_run_info) */
	tw_timer timer; /* as tw_self; "no timer" in a task of a strand */
	uint64_t
	    overruns; /* instants that the series missed since its last run; 0 for a one-shot */
	bool late;    /* the run started later than max_lateness_ns allows */
	bool closing; /* TW_CLOSE_RUN runs the timer, perhaps before its time */
};

/*
 * Describes the innermost callback that the calling thread runs.
 *
 *     struct tw_run_info run = TW_INIT(tw_run_info);
 *     tw_current(&run);
 *     beats += 1 + run.overruns;
 *
 * Threads: any. Never blocks, reads no clock.
 * Returns:
 *   1         inside a callback or release of a timer, or a run of a strand's series; *out
 *             describes it
 *   0         outside; all members of *out except size are 0
 *   -EINVAL   out is NULL, or out->size is too small for `timer`
 */
TW_API int tw_current(struct tw_run_info *out);

/* -------------------------------------------------------------- manual drive */

/*
 * Runs what is due on a service with TW_DRIVE_MANUAL.
 *
 * In each turn of a loop, sockets come first and this call comes once, last:
 *
 *     for (;;) {
 *             wait for the sockets and for tw_service_fd, or until tw_service_next_expiry;
 *             handle every socket that is ready;
 *             tw_service_advance(service, TW_NO_LIMIT);
 *     }
 *
 * A callback may close and free a connection whose socket is ready in the same turn: with the other
 * order, the socket's event would name a freed connection.
 *
 * At most `budget` callbacks run (TW_NO_LIMIT: all that are due); with an executor other than
 * tw_executor_inline() they are handed over. A piece of work of a strand or scheduler counts as
 * one, and up to 256 releases of cancelled groups come on top. What callbacks schedule meanwhile
 * comes in a later call, so each call returns. A call in a tick that is done, with nothing new,
 * costs a clock read.
 *
 * Threads: one at a time; that thread is the driver. Blocks only if a callback does.
 * Returns:
 *   >= 0         callbacks run or handed over
 *   -EINVAL      service is NULL; budget is 0, or above INT_MAX; the service has a tick thread
 *   -EBUSY       called from inside itself, or while another thread drives: drive on one thread
 *   -ENOMEM      no memory
 *   -ESHUTDOWN   the service is closed
 *   -EPERM       in a forked child
 */
TW_API int tw_service_advance(tw_service *service, size_t budget);

/*
 * Tells when to call tw_service_advance next.
 *
 * The instant is not later than the next expiry, and now and then earlier, to move far timers. It
 * covers all calls that happened before on any thread. If other threads schedule while the loop
 * waits, use tw_service_fd.
 *
 * Threads: the driver's. Never blocks, makes no system call.
 * Returns:
 *   0            *out_ns is an instant on the scale of tw_service_now; UINT64_MAX: nothing is
 *                pending
 *   -EINVAL      NULL, or the service has a tick thread
 *   -EBUSY       called from a callback, or while another thread drives: call it on the driver's
 *   -ESHUTDOWN   the service is closed
 *   -EPERM       in a forked child
 */
TW_API int tw_service_next_expiry(tw_service *service, uint64_t *out_ns);

/*
 * Returns a descriptor that is readable when tw_service_advance has something to do.
 *
 * Watch it for reading, level-triggered. Never read or close it: it belongs to the service. An
 * advance makes it quiet, unless the budget was used up. After a close it stays readable: take it
 * out of the loop. The first call makes it (three descriptors, close-on-exec); from then on an
 * advance costs a system call when the next expiry has changed.
 *
 * Threads: the driver's for the first call; any later. Never blocks.
 * Returns:
 *   >= 0         the descriptor
 *   -EINVAL      service is NULL, has a tick thread, or has a manual clock
 *   -EBUSY       the first call: called from a callback, or while another thread drives: call it
 *                before the loop
 *   -ESHUTDOWN   the first call: the service is closed
 *   -EMFILE, -ENFILE, -ENOMEM, -ENOSPC   the first call: the system has no room; nothing changed
 *   -EPERM       in a forked child
 */
TW_API int tw_service_fd(tw_service *service);

#ifdef __cplusplus
}
#endif
#endif
