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

/* A callback. It must not longjmp, throw or end its thread. */
typedef void tw_fn(void *arg);

/*
 * Handle of a timer: a value, copied freely, kept anywhere, used from any thread, never freed. All-zero is
 * "no timer". A stale handle is harmless (G5).
 */
typedef struct tw_timer {
	uint64_t id;
} tw_timer;

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
	TW_FATE_DROPPED = 2 /* by close, or by a refusing executor under TW_REFUSED_DROP */
};

/* Called exactly once when the timer has come to its end: the place to free arg. See struct tw_task. */
typedef void tw_release_fn(void *arg, enum tw_fate fate);

/* ------------------------------------------------------------------ service */

enum tw_drive {
	TW_DRIVE_THREAD = 0, /* the service has a tick thread */
	TW_DRIVE_MANUAL = 1  /* the caller drives it with tw_advance */
};

/* What happens when an executor refuses a hand-over. Never silent: tw_stats.refused counts each. */
enum tw_on_refused {
	TW_REFUSED_RETRY = 0,  /* offered again in the next tick, in order, cancellable meanwhile */
	TW_REFUSED_INLINE = 1, /* run by the tick thread */
	TW_REFUSED_DROP =
	    2 /* ended with TW_FATE_DROPPED. The service's own pool refuses when thousands of batches wait */
};

/* All-zero is a good choice: each knob's 0 means its default. */
struct tw_service_config {
	size_t size;           /* sizeof(struct tw_service_config); 0 only if all else is 0 too */
	uint64_t tick_ns;      /* resolution; 50 us .. 1 s; default 1 ms */
	uint32_t buckets;      /* of the first wheel; power of two, 64 .. 65536; default 4096 */
	uint32_t max_timers;   /* 1 .. 2^28; default 16 Mi; address space, touched on demand. Each thread that uses the
				* service, its own ones included, may add up to 256: its cache of free slots */
	uint32_t lane_entries; /* undrained entries per scheduling thread; 1024 .. 2^30; default 1 Mi */
	uint32_t workers;      /* threads of the service's own pool; 1 .. 1024; default: CPUs the process may use.
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
};

/*
 * Makes a service. cfg may be NULL. *out is written on success only.
 * -EINVAL: out is NULL; a knob out of range; an unknown enum value; workers and executor both given.
 * -E2BIG: cfg->size is larger than the library knows and the tail is not zero. -ENOMEM. -EAGAIN or -EPERM: a thread
 * could not be made, or not with the wanted policy. -EPERM also: in a forked child, on a manual clock of the parent. -EMFILE, -ENFILE,
 * -ENOSPC: no descriptors for a tick thread on tw_clock_boottime(). Whatever fails, nothing is left behind.
 */
TW_API int tw_service_create(tw_service **out, const struct tw_service_config *cfg);

enum tw_close_mode {
	TW_CLOSE_DROP = 0, /* pending timers end as dropped; their releases are told, on the calling thread */
	TW_CLOSE_RUN = 1,  /* each pending timer runs once, now; tw_closing() is true in it */
	TW_CLOSE_DRAIN = 2 /* wait for the pending to fire; series end after their next run; at the timeout: drop */
};

/*
 * Refuses new work (-ESHUTDOWN), settles the old, waits for callbacks that run, and stops the service's threads.
 * Handles stay usable (tw_cancel: TW_GONE). A callback that re-arms itself while close comes in ends there.
 *
 * Several closes, one after the other or at once: the strictest mode that any of them has asked for holds for all, DROP
 * before RUN before DRAIN, so a drain under way ends when another thread asks for TW_CLOSE_DROP. The latest takes over, and
 * the earlier ones wait for it, each as long as its own timeout allows.
 *
 * 0: nothing is left, no callback runs, the service's threads have ended, whichever close saw to it. -EINVAL: NULL or unknown
 * mode. -EDEADLK: called from a callback, a release or a visitor of this service, or TW_CLOSE_DRAIN with timers pending
 * on a manual clock, which nobody could advance; nothing has changed then.
 * -ETIMEDOUT: callbacks still run (or wait for their executor) after timeout_ns; the service stays closed, call again. For
 * TW_CLOSE_DRAIN the timeout bounds the draining; what then is left is dropped, and callbacks that run are waited for a second
 * longer at most. With inline execution, or a manual drive that another thread is in, a callback that does not return
 * holds up all of close: what is pending then stays so until the next close. When all has come to rest, exit handlers
 * that callbacks have left on the service's threads (pthread_key_create) are waited for without bound.
 *
 * Where the kernel has membarrier when the service is created but refuses it at close (a sandbox entered meanwhile), close also waits
 * until each thread that has scheduled something calls tw_schedule or tw_reset again, or ends. tw_service_destroy does not.
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
	TW_CLOSE_NO_WAIT = 1
};

/*
 * Told of a timer that close drops, beside its release and before it, on close's thread: what it would have called, and how long
 * it still had (0: due; a hint as tw_remaining's). tw_self() is the timer. It may call what a release may; new work is refused.
 */
typedef void tw_dropped_fn(void *visitor_arg, tw_timer timer, tw_fn *fn, void *arg, uint64_t remaining_ns);

struct tw_close_options {
	size_t size; /* sizeof(struct tw_close_options) */
	enum tw_close_mode mode;
	uint32_t flags; /* enum tw_close_flags */
	uint64_t timeout_ns;

	/* May be NULL. Told of each timer that this very call drops; of several closes each drops what it finds. */
	tw_dropped_fn *dropped;
	void *visitor_arg;
};

/* The full form. -EINVAL also: options NULL or too small, unknown flags. -E2BIG: non-zero bytes beyond the known struct. */
TW_API int tw_service_close_with(tw_service *service, const struct tw_close_options *options);

/*
 * Closes with TW_CLOSE_DROP if no close that waits has answered 0 yet (so what a close with TW_CLOSE_RUN that timed out had not run is
 * dropped), waits without bound, and frees everything. May not race with any
 * other call on the service. NULL is allowed. 0, or -EDEADLK from one of its own callbacks.
 * In a forked child: frees without closing, releases are not called. 0.
 */
TW_API int tw_service_destroy(tw_service *service);

/*
 * The service's clock, nanoseconds: the scale of deadlines. Any thread. Costs a clock read. 0 if service is NULL. It never
 * falls by more than a tick: while a manual clock is set back it stands still. 0 in a forked child.
 */
TW_API uint64_t tw_now(const tw_service *service);

/* ----------------------------------------------------------------- schedule */

/*
 * Common to all that schedule. Any thread, also from callbacks. Lock-free; no allocation but now and then to grow.
 * fn runs once, on the executor, never inside the call itself; not before now + delay (G1), at most 2 ticks
 * plus dispatch after it (G2). Delay 0 and deadlines in the past are due at once: in the
 * driver's next turn, by the next tick at the latest. *out (may be NULL) is
 * written before the timer is published: its callback may read it. On an error nothing is scheduled and *out is "no timer"
 * (untouched if arguments are bad).
 * -EINVAL: service or fn NULL, a bad option. -ERANGE: beyond TW_MAX_DELAY_NS. -EAGAIN: max_timers or lane_entries
 * reached. -ENOMEM. -ESHUTDOWN: closed.
 */
TW_API int tw_schedule(tw_service *service, uint64_t delay_ns, tw_fn *fn, void *arg, tw_timer *out);

/* At an instant on tw_now()'s scale; reads no clock; at most 1 tick plus dispatch late. */
TW_API int tw_schedule_at(tw_service *service, uint64_t deadline_ns, tw_fn *fn, void *arg, tw_timer *out);

enum tw_period_mode {
	TW_FIXED_RATE = 0, /* run n is due at first + n * period, whatever the runs took */
	TW_FIXED_DELAY = 1 /* the next run is due a period after the last has returned */
};

/*
 * Runs of one series never overlap. A fixed-rate series whose next instant is past already skips to the next one
 * in the future, which keeps the phase; the callback learns how many were missed from tw_overruns(). A period below the
 * tick is allowed: what is missed is counted.
 */
struct tw_period {
	size_t size;        /* sizeof(struct tw_period) */
	uint64_t first_ns;  /* delay of the first run; 0: at once */
	uint64_t period_ns; /* 1 .. TW_MAX_DELAY_NS */
	enum tw_period_mode mode;
	uint64_t count; /* runs after which the series ends; 0: no end */
};

/* A series. The handle stays the same over all its runs. -EINVAL also: period NULL or zero, unknown mode. */
TW_API int tw_schedule_every(tw_service *service, const struct tw_period *period, tw_fn *fn, void *arg, tw_timer *out);

enum tw_task_flags {
	TW_TASK_AT = 1 /* when_ns is a deadline on tw_now()'s scale instead of a delay */
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
	 * Told when the timer has come to its end: fired, cancelled or dropped. It runs after the last
	 * callback has returned, on the thread that ended the timer: the one that ran it, the one that cancelled
	 * it, or the caller of close.
	 */
	tw_release_fn *release;
};

/* -EINVAL also: task NULL or its size too small, unknown flags. -E2BIG: non-zero bytes beyond the known struct. */
TW_API int tw_schedule_task(tw_service *service, const struct tw_task *task, tw_timer *out);

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

/* The same to an instant on tw_now()'s scale: reads no clock. For servers that keep a loop time. */
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
 * Hints, true when looked at: is it waiting to run? How long until it is due (0: due)? For a timer hours away that was scheduled a
 * moment ago, it may be up to 1/32 less. -ENOENT: not pending. -EINVAL: NULL.
 */
TW_API bool tw_is_pending(tw_service *service, tw_timer timer);
TW_API int tw_remaining(tw_service *service, tw_timer timer, uint64_t *out_ns);

/* ------------------------------------------------- from inside a callback */

/* The running callback's own timer ("no timer" outside of callbacks and releases). */
TW_API tw_timer tw_self(void);

/* How many nominal instants its series missed since the last run (0 outside, and for one-shots). */
TW_API uint64_t tw_overruns(void);

/* Whether it runs because of TW_CLOSE_RUN, perhaps before its time. */
TW_API bool tw_closing(void);

/* -------------------------------------------------------------- manual drive */

/*
 * A service with TW_DRIVE_MANUAL is driven by a loop of the caller's:
 *
 *     for (;;) {
 *             wait for the loop's own descriptors and for tw_fd, or until tw_next_expiry;
 *             tw_advance(service, TW_NO_LIMIT);
 *     }
 *
 * Its driver is whoever is in one of the three calls below, one thread at a time, usually always the same. All else is as with a tick
 * thread, and any thread may schedule, reset and cancel.
 */

/*
 * Runs what is due: at most `budget` callbacks (TW_NO_LIMIT: all); with an executor other than tw_executor_inline() it hands them
 * over instead. What callbacks schedule or re-arm meanwhile comes in a later call, even if it is due at once: so
 * each call returns. The number of callbacks run or handed over.
 * -EINVAL: NULL, budget 0 or above INT_MAX without being TW_NO_LIMIT, or the service has a tick thread.
 * -EBUSY: called from inside itself, or while another thread drives. -ESHUTDOWN: closed. -ENOMEM.
 */
TW_API int tw_advance(tw_service *service, size_t budget);

/*
 * *out_ns: the instant on tw_now()'s scale to call tw_advance at. UINT64_MAX: nothing is pending; an instant that is not in the
 * future: something is due now. It is not later than the next expiry, and now and then earlier (to move far timers nearer, G9).
 * It takes all calls into account that the driver's thread has made, and those of other threads that came before; so it is
 * sufficient alone when no other thread schedules, resets to earlier, or cancels many (G11); else use tw_fd. No system
 * call; as much work as was scheduled since the last call, or advance.
 * -EINVAL: NULL, or the service has a tick thread. -EBUSY: called from a callback that tw_advance runs, or while another thread
 * drives. -ESHUTDOWN: closed. *out_ns is written on success only.
 */
TW_API int tw_next_expiry(tw_service *service, uint64_t *out_ns);

/*
 * One descriptor that is readable when it is time to call tw_advance, and when another thread needs the loop: it has scheduled
 * something earlier, filled a part of its queue, or cancelled much. To be watched for reading, level-triggered (epoll, poll, libuv,
 * libevent, libev, GLib), and for nothing else: it must not be read or closed. tw_advance makes it quiet again, unless its
 * budget was used up: then it stays readable. From close on it stays readable for good, and tw_advance answers -ESHUTDOWN: take it out of
 * the loop. It belongs to the service; the same for each call; closed by tw_service_destroy.
 * The first call makes it (three descriptors in all, close-on-exec); from then on advances keep it set: a system call when the next
 * expiry is another one, and membarrier when it is later and other threads use the service. Without that call, none is made.
 * Not negative: the descriptor. -EINVAL: NULL; the service has a tick thread; a manual clock, of which no descriptor could
 * tell when it is time (its advances drive the service themselves). The first call also: -EBUSY: as tw_next_expiry. -ESHUTDOWN: closed.
 * -EMFILE, -ENFILE, -ENOMEM, -ENOSPC: the system has no descriptors left, or no room to watch them; nothing changed.
 */
TW_API int tw_fd(tw_service *service);

#ifdef __cplusplus
}
#endif
#endif
