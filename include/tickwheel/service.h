/*
 * The timer service: create, schedule, reset, cancel, close. Rules that hold for all of it stand in tickwheel.h.
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
 * Handle of a timer: a value, copied freely, kept anywhere, used from any thread, never freed. All-zero is
 * "no timer". A stale handle is harmless (G5).
 */
typedef struct tw_timer {
	uint64_t id;
} tw_timer;

/* Handle of a group of timers (group.h): a value too. All-zero is "no group". A stale handle is harmless. */
typedef struct tw_group {
	uint64_t id;
} tw_group;

/* For ever, as a timeout; no limit, as a budget. */
#define TW_FOREVER UINT64_MAX
#define TW_NO_LIMIT SIZE_MAX

/* The longest delay, and the farthest deadline from the service's creation: 146 years. Beyond it: -ERANGE. */
#define TW_MAX_DELAY_NS (UINT64_C(1) << 62)

/* What became of a cancel; see the functions. */
enum tw_outcome {
	TW_CANCELLED = 0, /* it had not been claimed and will never run (again); exactly one canceller gets this */
	TW_GONE = 1,      /* it ran, was cancelled, was dropped, or never was */
	TW_RUNNING = 2,   /* its callback or its release is running right now */
	TW_FINISHED = 3,  /* tw_cancel_wait only: it was running and has returned */
	TW_SELF = 4       /* tw_cancel_wait only: called from its own callback or release */
};

/* How a timer came to its end, told to its release. */
enum tw_fate {
	TW_FATE_FIRED = 0,
	TW_FATE_CANCELLED = 1,
	TW_FATE_DROPPED = 2, /* by close, or by a refusing executor under TW_REFUSED_DROP */
	TW_FATE_LATE = 3     /* it would have started later than max_lateness_ns allows: TW_LATE_DROP */
};

/* Called exactly once when the timer has come to its end: the place to free arg. See struct tw_task. */
typedef void tw_release_fn(void *arg, enum tw_fate fate);

/* ------------------------------------------------------------------ service */

enum tw_drive {
	TW_DRIVE_THREAD = 0, /* the service has a tick thread */
	TW_DRIVE_MANUAL = 1  /* the caller drives it with tw_service_advance */
};

/*
 * What happens when an executor refuses a hand-over. Never silent: tw_service_stats.refused counts each. What has waited for an executor, refused or
 * unclaimed, for more than 2^26 ticks (18.6 hours at 1 ms, 56 minutes at 50 us) may wait up to 2^26 more once it is taken: late, never early.
 */
enum tw_on_refused {
	TW_REFUSED_RETRY = 0,  /* offered again in the next tick, in order, cancellable meanwhile */
	TW_REFUSED_INLINE = 1, /* run by the tick thread */
	/*
	 * Ended with TW_FATE_DROPPED, without a run. The driver (the tick thread, or the caller of tw_service_advance) calls the
	 * release: a release that blocks holds up all timers. The service's own pool refuses when thousands of batches wait.
	 */
	TW_REFUSED_DROP = 2
};

/* All-zero is a good choice: each knob's 0 means its default. */
struct tw_service_config {
	size_t size;           /* sizeof(struct tw_service_config); 0 only if all else is 0 too */
	uint64_t tick_ns;      /* resolution; 50 us .. 1 s; default 1 ms */
	uint32_t buckets;      /* of the first wheel; power of two, 64 .. 65536; default 4096 */
	uint32_t max_timers;   /* 1 .. 2^28; default 16 Mi; address space, touched on demand. Each thread that uses the
				* service, its own ones included, may add up to 256: its cache of free slots */
	uint32_t lane_entries; /* undrained entries per scheduling thread; 1024 .. 2^30; default 1 Mi */
	uint32_t workers;      /* threads that the service's own pool keeps; 1 .. 1024; default: CPUs the process
	                        * may use (affinity, and CPU quota of its control groups), at most max_workers.
	                        * Must be 0 if executor is given */
	enum tw_drive drive;
	enum tw_on_refused on_refused;
	tw_clock *clock;       /* NULL: the process's default (clock.h). Outlives the service */
	tw_executor *executor; /* NULL: a pool of `workers` threads. Outlives the service */

	/* For the threads that the service makes. */
	const char *thread_name; /* prefix, at most 9 bytes are used; default "tw". Tick thread: "tw-tick" */
	size_t stack_size;       /* bytes; 0: the system's default */
	const void *affinity;    /* a cpu_set_t of affinity_size bytes, copied; NULL: inherited */
	size_t affinity_size;
	int sched_policy;   /* SCHED_OTHER, SCHED_FIFO, SCHED_RR of the tick thread; 0 (SCHED_OTHER): default */
	int sched_priority; /* for SCHED_FIFO and SCHED_RR, not 0; else 0 */

	/*
	 * Notifies of user code that does not return: any kind that tw_service_liveness sees, once for each run that has lasted stuck_ns. `seen` is
	 * what tw_service_liveness says of turns and runs, with that run as the longest; overdue timers are not counted in it.
	 *
	 * on_stuck is called on the thread that drives the service, in a turn. The tick thread wakes up for it while anything runs, and not if
	 * nothing does. With a manual drive it is called in tw_service_advance; neither tw_service_fd nor tw_service_next_expiry asks for that.
	 * on_stuck must be short, as a callback that runs inline, and must not wait for the driver.
	 * If the tick thread itself is stuck (in an inline callback, or in on_stuck), on_stuck is not called: have another thread ask
	 * tw_service_liveness.
	 *
	 * Costs: a reading of the clock for each run that is no timer. Set both, or neither.
	 *
	 * A pool at its maximum is reported too, once: when runs wait, all of its max_workers workers are inside runs, and none
	 * has begun or ended one for stuck_ns. For jobs of limiters all workers but one count. seen->pool_at_max is 1 then. Only a service with a tick thread looks for it by itself.
	 * With a manual drive ask tw_service_liveness, whose pool_at_max is the same.
	 */
	uint64_t stuck_ns; /* default 0: not wanted */
	void (*on_stuck)(void *stuck_arg, const struct tw_service_liveness *seen);
	void *stuck_arg;

	/*
	 * Of what jitter draws. 0: a random one. Each thread draws numbers of its own, told by the order in which threads first
	 * use the service (its own ones included; one that comes after another has ended may go on with that one's numbers):
	 * the same seed and order give the same draws.
	 */
	uint64_t seed;

	/*
	 * Most threads of the service's own pool at a time; `workers` .. 1024. Default: 64, or `workers` if that is more.
	 * While callbacks block and others wait, the pool starts threads beyond `workers` ("Blocking" in pool.h).
	 * So `workers` 1 alone does not keep callbacks from running beside each other. Set max_workers to 1, too: then one
	 * thread runs all callbacks, one after the other. Must be 0 if executor is given.
	 */
	uint32_t max_workers;
	uint32_t reserved; /* 0 */
};

/*
 * Makes a service. cfg may be NULL. *out is written on success only.
 * -EINVAL: out is NULL; a knob out of range; an unknown enum value; workers and executor both given.
 * -E2BIG: cfg->size is larger than the library knows and the tail is not zero. -ENOMEM. -EAGAIN or -EPERM: a thread
 * could not be made, or not with the wanted policy. -EPERM also: in a forked child, on a manual clock or a pool of the parent. -ESHUTDOWN: the
 * executor is a pool that is closed. -EMFILE, -ENFILE,
 * -ENOSPC: no descriptors for a tick thread on tw_clock_boottime(). Whatever fails, nothing is left behind.
 */
TW_API int tw_service_create(tw_service **out, const struct tw_service_config *cfg);

enum tw_close_mode {
	TW_CLOSE_DROP = 0, /* pending timers end as dropped; their releases are told, on the calling thread */
	TW_CLOSE_RUN = 1,  /* each pending timer runs once, now; tw_run_info.closing is true in it */
	TW_CLOSE_DRAIN = 2 /* wait for the pending to fire; series end after their next run; at the timeout: drop */
};

/*
 * Refuses new work (-ESHUTDOWN), ends the old, waits for callbacks that run, and stops the service's threads.
 * Handles stay usable (tw_cancel: TW_GONE). A callback that re-arms its timer after the call has begun does not re-arm it.
 *
 * What becomes of a timer:
 *   mode    pending, or queued at its executor    background (TW_TASK_BACKGROUND)          running
 *   DROP    dropped, by the calling thread        likewise                                 ends after this run
 *   RUN     runs once, soon                       likewise                                 ends after this run
 *   DRAIN   fires at its time; a series ends      goes on, series too; dropped when the    ends after this run
 *           after its next run                    last other timer has ended
 * When the timeout has passed: DROP and RUN leave what has not ended, DRAIN drops it.
 * Members of groups that were cancelled end as cancelled. Completions of groups (tw_group_close_then) have all been called when
 * a close that waits answers 0.
 *
 * Several closes, one after the other or at once: the strictest mode that any of them has asked for holds for all, DROP
 * before RUN before DRAIN, so a drain under way ends when another thread asks for TW_CLOSE_DROP. The latest takes over, and
 * the earlier ones wait for it, each as long as its own timeout allows, one with TW_CLOSE_FLAG_NO_WAIT too.
 *
 * A worker of the service's pool may close the service from work that is not the service's own.
 * Another worker then runs what the service has handed over. A pool with max_workers 1 has no other
 * worker, and a strand no other thread: there a close that waits, and tw_service_destroy, answer -EDEADLK.
 *
 * 0: nothing is left, no callback runs, the service's threads have ended, whichever close saw to it. -EINVAL: NULL or unknown
 * mode. -EBUSY: strands, schedulers and the like still use it; nothing has changed then. -EDEADLK:
 * the calling thread is the only one that runs the service's callbacks; or
 * nothing uses it, and the call comes from a callback, a release or a visitor of this service, or asks for
 * TW_CLOSE_DRAIN with timers pending on a manual clock, which nobody could advance; nothing has
 * changed then either. Those layers that were destroyed while an executor had a piece of their work are waited for first; but by
 * a strand's own task that has destroyed it: -EDEADLK.
 * -ETIMEDOUT: callbacks still run (or wait for their executor) after timeout_ns; the service stays closed, call again (if it is such
 * a strand that waits for its executor, it is still open). With
 * TW_CLOSE_RUN what has not begun by then is still pending. The service's own tick thread is given a tenth of a second at least,
 * so that TW_CLOSE_DROP with timeout 0 answers 0 if no callback runs. For TW_CLOSE_DRAIN the timeout bounds the draining; what
 * then is left is dropped, and callbacks that run are waited for a second longer at most. With inline execution, or a manual drive that another thread is in, a callback that does not return
 * holds up all of close: what is pending then stays so until the next close. When all has come to rest, exit handlers
 * that callbacks have left on the service's threads (pthread_key_create) are waited for without bound.
 *
 * -ENOTSUP: the kernel refuses membarrier, which it granted when the service was created (a sandbox entered meanwhile). Nothing has
 * changed, and the service runs on. Enter the sandbox before you create the service, or end the service by tw_service_destroy.
 */
TW_API int tw_service_close(tw_service *service, enum tw_close_mode mode, uint64_t timeout_ns);

enum tw_close_flags {
	/*
	 * Do not wait for callbacks and releases that run on other threads, nor for the service's threads. 0 then means:
	 * nothing is pending, no further run will be claimed. What a thread had claimed (a run each) it may be about to begin or in
	 * the middle of, then comes its release; these may use their args and call anything. tw_cancel_wait waits for one of them.
	 * TW_CLOSE_RUN and TW_CLOSE_DRAIN wait until all have been claimed.
	 * A later close without this flag, or tw_service_destroy, waits for them and ends the threads.
	 */
	TW_CLOSE_FLAG_NO_WAIT = 1
};

/*
 * A visitor of timers: tw_service_foreach calls it for each pending timer, a close for each timer that it drops.
 *
 * fn and arg are what the timer would have called. remaining_ns is the time until it is due (0: due), a hint
 * as that of tw_remaining. A visitor that returns non-zero is not called again by the same call.
 */
typedef int tw_visit_fn(void *visitor_arg, tw_timer timer, tw_fn *fn, void *arg, uint64_t remaining_ns);

struct tw_close_options {
	size_t size; /* sizeof(struct tw_close_options) */
	enum tw_close_mode mode;
	uint32_t flags; /* enum tw_close_flags */
	uint64_t timeout_ns;

	/*
	 * Called for each timer that this call drops, before the timer's release, on the same thread. NULL: not wanted.
	 * tw_self() is the timer. The visitor may call what a release may; new work is refused.
	 */
	tw_visit_fn *dropped;
	void *visitor_arg;
};

/* The full form. -EINVAL also: options NULL or too small, unknown flags. -E2BIG: non-zero bytes beyond the known struct. */
TW_API int tw_service_close_with(tw_service *service, const struct tw_close_options *options);

/*
 * Closes with TW_CLOSE_DROP if no close that waits has answered 0 yet (so what a close with TW_CLOSE_RUN that timed out had not run is
 * dropped), waits without bound, and frees everything. May not race with any
 * other call on the service. NULL is allowed. 0, or -EDEADLK or -EBUSY as tw_service_close.
 * In a forked child: frees without closing, releases are not called. 0.
 */
TW_API int tw_service_destroy(tw_service *service);

/*
 * The service's clock, nanoseconds: the scale of deadlines. Any thread. Costs a clock read. 0 if service is NULL. It never
 * falls by more than a tick: while a manual clock is set back it stands still. 0 in a forked child.
 */
TW_API uint64_t tw_service_now(const tw_service *service);

/* ----------------------------------------------------------------- schedule */

/*
 * Common to all that schedule. Any thread, also from callbacks. Lock-free; no allocation but now and then to grow.
 * fn runs once, on the executor, never inside the call itself; not before now + delay (G1), at most 2 ticks
 * plus dispatch after it (G2). Delay 0 is a delay like any other: it also takes up to 2 ticks. A deadline in the past
 * is due in the driver's next turn, by the next tick at the latest. *out (may be NULL) is
 * written before the timer is published: its callback may read it. On an error nothing is scheduled and *out is "no timer"
 * (untouched if arguments are bad).
 * -EINVAL: service or fn NULL, a bad option. -ERANGE: beyond TW_MAX_DELAY_NS. -EAGAIN: max_timers or lane_entries
 * reached. -ENOMEM. -ESHUTDOWN: closed.
 */
TW_API int tw_schedule(tw_service *service, uint64_t delay_ns, tw_fn *fn, void *arg, tw_timer *out);

/* At an instant on tw_service_now()'s scale; reads no clock; at most 1 tick plus dispatch late. */
TW_API int tw_schedule_at(tw_service *service, uint64_t deadline_ns, tw_fn *fn, void *arg, tw_timer *out);

enum tw_period_mode {
	TW_FIXED_RATE = 0, /* run n is due at first + n * period, whatever the runs took */
	TW_FIXED_DELAY = 1 /* the next run is due a period after the last has returned */
};

/*
 * What a fixed-rate series does when its next nominal instant is past already as a run returns. With each policy, runs
 * and overruns together make up the nominal instants, and the phase is kept. No matter with TW_FIXED_DELAY, which misses none.
 */
enum tw_missed_policy {
	/* Goes on with the next instant in the future; all that are past were missed. */
	TW_MISSED_SKIP = 0,

	/* One run now, for the last of those that are past; the others were missed. Then on phase. */
	TW_MISSED_COALESCE = 1,

	/*
	 * One run for each, back to back, each through the executor's queue like all else: none is missed. A series whose runs
	 * take longer than its period falls behind without bound, unless max_lateness_ns and TW_LATE_DROP bound it.
	 */
	TW_MISSED_BURST = 2
};

/*
 * Runs of one series never overlap. A fixed-rate series that has fallen behind does as `missed` says; the callback learns from
 * tw_current how many instants were missed. A period below the tick is allowed: what is missed is counted.
 */
struct tw_period {
	size_t size;        /* sizeof(struct tw_period) */
	uint64_t first_ns;  /* delay of the first run; 0: at once */
	uint64_t period_ns; /* 1 .. TW_MAX_DELAY_NS */
	enum tw_period_mode mode;
	uint64_t count; /* runs after which the series ends; 0: no end */
	enum tw_missed_policy missed;
	uint32_t reserved; /* 0 */
};

/*
 * A series. The handle stays the same over all its runs. -EINVAL also: period NULL or zero, unknown mode or policy, reserved
 * not 0.
 */
TW_API int tw_schedule_every(tw_service *service, const struct tw_period *period, tw_fn *fn, void *arg, tw_timer *out);

enum tw_task_flags {
	TW_TASK_AT = 1, /* when_ns is a deadline on tw_service_now()'s scale instead of a delay */
	/*
	 * A background timer: TW_CLOSE_DRAIN does not wait for it. A series goes on during the drain. When the last other timer
	 * has ended, background timers are dropped (TW_FATE_DROPPED). A series must be endless: -EINVAL with a `count`.
	 */
	TW_TASK_BACKGROUND = 4,
	TW_TASK_CONTEXT = 2 /* the context is `context`, instead of the calling thread's (context.h) */
};

/* What happens to a run that would start more than max_lateness_ns after its deadline. */
enum tw_late_policy {
	TW_LATE_RUN = 0, /* it runs, and tw_run_info.late is true in it */
	TW_LATE_DROP =
	    1 /* it does not run: the timer ends with TW_FATE_LATE; of a series only this instant is missed */
};

/* The full form. Fields left 0 mean: not wanted. */
struct tw_task {
	size_t size; /* sizeof(struct tw_task) */
	tw_fn *fn;
	void *arg;
	uint64_t when_ns;  /* delay, or deadline with TW_TASK_AT; must be 0 for a series without TW_TASK_AT */
	uint32_t flags;    /* enum tw_task_flags */
	uint32_t reserved; /* 0 */
	const struct tw_period *period; /* a series; read during the call only. With TW_TASK_AT first_ns must be 0 */

	/*
	 * Told when the timer has come to its end: fired, cancelled or dropped. Called exactly once, after the last
	 * callback has returned: on the thread that cancelled it, by the executor, by the driver (TW_REFUSED_DROP), or by
	 * the caller of close; if it ended with its group, see group.h.
	 */
	tw_release_fn *release;

	/*
	 * Where and when exactly. All but the executor hold for a series too, as said with each.
	 *
	 * executor: other than the service's, which NULL stands for. It must outlive the service. It gets batches of its own
	 * timers only, in the order that G6 promises; if it refuses, the service's on_refused says what follows, and
	 * other executors' timers are not held up.
	 */
	tw_executor *executor;

	/*
	 * How late a run may start, as seen by the service's clock just before it; any value, 0: as late as may be. Counted from the
	 * deadline, which for this is the instant that jitter and slack have chosen; rounding up to ticks and handing over count
	 * as lateness, so a limit of less than three ticks is seldom kept. It holds in TW_CLOSE_RUN too. For a series each run is
	 * judged by its own instant; what is not run is an overrun, does not count towards `count`, and the series goes on.
	 */
	uint64_t max_lateness_ns;

	/*
	 * May be due up to so much later, to share a wake-up with others: it gets the roundest tick within slack (that with
	 * the largest power of two in its number). 0 .. TW_MAX_DELAY_NS. A reset chooses anew from the new deadline. A series chooses for
	 * each run, while its nominal instants stay what they are; with a slack as long as the period it may miss some.
	 */
	uint64_t slack_ns;

	/*
	 * Adds a random time of 0 .. jitter_ns, drawn once, when it is scheduled (config: seed). 0 .. TW_MAX_DELAY_NS. It moves the
	 * first instant of a series, and with it the phase of all: series that begin together are spread, and stay
	 * so. A reset draws no other, and adds none.
	 */
	uint64_t jitter_ns;
	enum tw_late_policy late; /* must be 0 without max_lateness_ns */
	uint32_t reserved_late;   /* 0 */

	tw_group group; /* it becomes a member; {0}: of none */

	/*
	 * With TW_TASK_CONTEXT: what callback and release run under, NULL: nothing. Else it must be NULL. Where hooks are set it must be
	 * what their capture could have returned, and is the timer's once the call has succeeded: till then it is the caller's.
	 */
	void *context;
};

/*
 * -EINVAL also: task NULL or its size too small, unknown flags or policies, reserved fields not 0, an executor without sound ops.
 * -ERANGE also: the delay or deadline with jitter and slack added. -E2BIG: non-zero bytes beyond the known struct. -ESHUTDOWN also: its
 * group is closed. -ENOENT: its group was destroyed.
 */
TW_API int tw_schedule_task(tw_service *service, const struct tw_task *task, tw_timer *out);

/*
 * Schedules n tasks, all or none: as tw_schedule_task for each, in array order (G6), at a fraction of the cost, with one reading of
 * the clock at most and one wake-up. The array is read during the call only. Its elements lie tasks[0].size apart, and all have that
 * size, which is sizeof(struct tw_task) as the caller knows it: so older and newer programs may pass arrays.
 * out: NULL, or room for n handles; all are written before any timer is published. n 0: nothing happens, 0.
 * Room for all is found before the first is scheduled. If any is refused, for whatever reason, nothing was scheduled. Against a close:
 * all are part of it, or -ESHUTDOWN and none is.
 * Errors as tw_schedule_task; which one, if several tasks are bad, is not said. tw_service_stats.rejected counts n. -EINVAL also: sizes that differ.
 * -EAGAIN also: n is more than max_timers leaves, or lane_entries (for n from lane_entries on: always). Any thread; close waits for it.
 */
TW_API int tw_schedule_bulk(tw_service *service, const struct tw_task *tasks, size_t n, tw_timer *out);

/* -------------------------------------------------------------------- reset */

/*
 * Moves an armed timer: it is due delay_ns from now, earlier or later than before; the handle stays. A reset to later
 * costs one compare-and-swap; to earlier an entry in this thread's lane too. A reset to the tick it has already
 * changes nothing in memory, and so orders nothing towards the callback. A reset of a fixed-rate series moves its phase.
 * From inside its own callback it re-arms the timer (a one-shot too): no allocation, the same handle, armed when the
 * callback has returned, the delay counted from the call.
 * 0. -ENOENT: gone, or its release runs. -EBUSY: running, and this is not its callback. -ECANCELED: from its own callback, after a cancel.
 * -ESHUTDOWN: closed. -ERANGE. -EINVAL: service NULL. -EAGAIN, -ENOMEM: no room to move it earlier; nothing changed.
 */
TW_API int tw_reset(tw_service *service, tw_timer timer, uint64_t delay_ns);

/* The same to an instant on tw_service_now()'s scale: reads no clock. For servers that keep a loop time. */
TW_API int tw_reset_at(tw_service *service, tw_timer timer, uint64_t deadline_ns);

/* ------------------------------------------------------------------- cancel */

/*
 * Never blocks; any thread. Wins until a worker has claimed the run, also when it has expired and waits in the
 * pool (G4). TW_CANCELLED: the callback will never run (again), and arg is the caller's, unless the timer has a release,
 * which has then been called on this thread. TW_RUNNING: the callback or release runs now, perhaps the caller's
 * own; a series ends after it, a one-shot cannot be re-armed any more. TW_GONE. -EINVAL: service NULL.
 */
TW_API int tw_cancel(tw_service *service, tw_timer timer);

/*
 * Cancels, and waits for the callback (and release) if it is running. After any answer but TW_RUNNING (timeout_ns
 * ran out) and TW_SELF, nothing of the timer runs any more: arg may be freed, and all that the callback wrote is visible.
 * Two callbacks that wait for each other wait for ever.
 */
TW_API int tw_cancel_wait(tw_service *service, tw_timer timer, uint64_t timeout_ns);

/*
 * tw_is_pending: whether the timer waits to run. tw_remaining: the time until it is due, exact to the tick; 0: it is due.
 * Another thread may run, cancel or move the timer in the same moment.
 *
 * Threads: any.
 * Returns of tw_remaining:
 *   0          *out_ns is written
 *   -ENOENT    the timer is not pending
 *   -EINVAL    service or out_ns is NULL
 */
TW_API bool tw_is_pending(tw_service *service, tw_timer timer);
TW_API int tw_remaining(tw_service *service, tw_timer timer, uint64_t *out_ns);

/* ------------------------------------------------- from inside a callback */

/* The running callback's own timer ("no timer" outside of callbacks and releases). */
TW_API tw_timer tw_self(void);

/* What the calling thread runs. Members at the end may be added. */
struct tw_run_info {
	size_t size;       /* in: sizeof(struct tw_run_info) */
	tw_timer timer;    /* as tw_self; "no timer" in a task of a strand */
	uint64_t overruns; /* instants that the series missed since its last run; 0 for a one-shot */
	bool late;         /* the run started later than max_lateness_ns allows */
	bool closing;      /* TW_CLOSE_RUN runs the timer, perhaps before its time */
};

/*
 * Describes the innermost callback that the calling thread runs.
 *
 * Threads: any. Never blocks, reads no clock.
 * Returns:
 *   1         inside a callback or release of a timer, or a run of a strand's series; *out describes it
 *   0         outside; all members of *out but size are 0
 *   -EINVAL   out is NULL, or out->size is too small for `timer`
 *   -EPERM    inside a callback that has forked, in the child
 */
TW_API int tw_current(struct tw_run_info *out);

/* -------------------------------------------------------------- manual drive */

/*
 * A service with TW_DRIVE_MANUAL is driven by a loop of the caller's. In each turn the sockets come first, and tw_service_advance last:
 *
 *     for (;;) {
 *             wait for the loop's sockets and for tw_service_fd, or until tw_service_next_expiry;
 *             handle every socket that is ready;
 *             tw_service_advance(service, TW_NO_LIMIT);   (once, after all sockets)
 *     }
 *
 * A callback may close and free a connection whose socket is ready in the same turn. If tw_service_advance came first, the event that
 * stands later in the turn would name a freed connection. It would also run the timeout of a peer whose answer has arrived.
 *
 * Its driver is whoever is in one of the three calls below, one thread at a time, usually always the same. All else is as with a tick
 * thread, and any thread may schedule, reset and cancel.
 */

/*
 * Runs what is due: at most `budget` callbacks (TW_NO_LIMIT: all); with an executor other than tw_executor_inline() it hands them
 * over instead. What callbacks schedule or re-arm meanwhile comes in a later call, even if it is due at once: so
 * each call returns. The number of callbacks run or handed over; what strands, schedulers and the like have to do counts as one
 * callback each, though it may be up to 64 tasks of a strand, or a slice of a scheduler; and is run even if the budget is less. Releases
 * of cancelled groups are no callbacks: up to 256 of them are called in a turn, beside the budget and the number. Without tw_service_fd, a call in
 * a tick that was dealt with already, with nothing
 * scheduled meanwhile that is due, costs a reading of the clock: it may come in each turn of a busy loop.
 * -EINVAL: NULL, budget 0 or above INT_MAX without being TW_NO_LIMIT, or the service has a tick thread.
 * -EBUSY: called from inside itself, or while another thread drives. -ESHUTDOWN: closed. -ENOMEM.
 */
TW_API int tw_service_advance(tw_service *service, size_t budget);

/*
 * *out_ns: the instant on tw_service_now()'s scale to call tw_service_advance at. UINT64_MAX: nothing is pending; an instant that is not in the
 * future: something is due now. It is not later than the next expiry, and now and then earlier (to move far timers nearer, G9).
 * It takes all calls into account that the driver's thread has made, and those of other threads that came before; so it is
 * sufficient alone when no other thread schedules, resets to earlier, or cancels many (G11); else use tw_service_fd. No system
 * call; as much work as was scheduled since the last call, or advance.
 * -EINVAL: NULL, or the service has a tick thread. -EBUSY: called from a callback that tw_service_advance runs, or while another thread
 * drives. -ESHUTDOWN: closed. *out_ns is written on success only.
 */
TW_API int tw_service_next_expiry(tw_service *service, uint64_t *out_ns);

/*
 * One descriptor that is readable when it is time to call tw_service_advance, and when another thread needs the loop: it has scheduled
 * something earlier, filled a part of its queue, or cancelled much. What the driver's own thread schedules between advances counts as
 * another's: one advance with nothing to do makes it quiet. To be watched for reading, level-triggered (epoll, poll, libuv,
 * libevent, libev, GLib), and for nothing else: it must not be read or closed. tw_service_advance makes it quiet again, unless its
 * budget was used up with something left: then it stays readable. From close on it stays readable for good, and tw_service_advance
 * answers -ESHUTDOWN: take it out of the loop. It belongs to the service; the same for each call; closed by tw_service_destroy.
 * The first call makes it (three descriptors in all, close-on-exec); from then on advances keep it set: a system call when the next
 * expiry is another one, and membarrier when it is later and other threads use the service. Without that call, none is made.
 * Not negative: the descriptor. -EINVAL: NULL; the service has a tick thread; a manual clock, of which no descriptor could
 * tell when it is time (its advances drive the service themselves). The first call also: -EBUSY: as tw_service_next_expiry. -ESHUTDOWN: closed.
 * -EMFILE, -ENFILE, -ENOMEM, -ENOSPC: the system has no descriptors left, or no room to watch them; nothing changed.
 */
TW_API int tw_service_fd(tw_service *service);

#ifdef __cplusplus
}
#endif
#endif
