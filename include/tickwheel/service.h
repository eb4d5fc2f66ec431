/*
 * The life of a timer service, its clock, and how to drive it from your loop.
 *
 * timer.h and task.h have the timers. tickwheel.h has the rules that all calls share: who may call
 * what, and what a service guarantees.
 */
#ifndef TICKWHEEL_SERVICE_H
#define TICKWHEEL_SERVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "executor.h"
#include "task.h"
#include "timer.h"
#include "version.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------- create */

/* Which thread drives a service. */
enum tw_drive {
	TW_DRIVE_THREAD = 0, /* a tick thread of the service */
	TW_DRIVE_MANUAL = 1  /* the caller, with tw_service_advance */
};

/* Knobs of a service. 0 picks the default of each. */
struct tw_service_config {
	size_t size;           /* sizeof(struct tw_service_config); may be 0 if all else is 0 */
	uint64_t tick_ns;      /* resolution: 50 us .. 1 s; default 1 ms */
	uint32_t buckets;      /* of the first wheel: a power of two, 64 .. 65536; default 4096 */
	uint32_t max_timers;   /* 1 .. 2^28 timers; default 16 Mi; up to 256 more a thread */
	uint32_t lane_entries; /* entries of one thread that wait for the driver: 1024 .. 2^30;
				* default 1 Mi */
	uint32_t workers;      /* threads that the service's own pool keeps: 1 .. 1024; default: the
				* processors that the process may use (affinity, and the CPU
				* quota of its own control group). 0 with an executor */
	uint32_t max_workers;  /* the most threads of that pool: `workers` .. 1024; default 64. It
				* starts threads beyond `workers` while callbacks block (pool.h).
				* Set both to 1 to run callbacks one after the other */
	enum tw_drive drive;
	tw_clock *clock;       /* NULL: the process's default (clock.h). Outlives the service */
	tw_executor *executor; /* NULL: a pool of its own. Outlives the service */

	/* Threads of the service. */
	const char *thread_name; /* prefix, at most 9 bytes; default "tw": "tw-tick" and so on */
	size_t stack_size;       /* bytes of each thread's stack; default 1 MiB */
	const void *affinity;    /* a cpu_set_t of affinity_size bytes, copied; NULL: inherited */
	size_t affinity_size;
	int sched_policy;   /* of the tick thread: SCHED_OTHER (default), SCHED_FIFO, SCHED_RR */
	int sched_priority; /* not 0 for SCHED_FIFO and SCHED_RR; else 0 */

	/*
	 * Seed for the jitter of the service's limiters. 0 picks a random one. With a seed, the
	 * draws of each limiter depend on the order in which limiters are created.
	 */
	uint64_t seed;

	/*
	 * For people: tw_service_dump shows it, and Prometheus' text has it as the label `service`.
	 * Not copied: a static string.
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
 *   -ENOMEM      no memory, or no address space
 *   -EAGAIN      a thread cannot be created: a limit of threads, of address space or, after
 *                mlockall, of locked memory. The misuse hook gets a text with these limits
 *   -EPERM       the scheduling policy is not permitted; or clock or pool belong to the parent of a
 *                forked child
 *   -ESHUTDOWN   the executor is a closed pool
 *   -EMFILE, -ENFILE, -ENOSPC   no descriptors for a tick thread on tw_clock_boottime()
 */
TW_API int tw_service_create(tw_service **out, const struct tw_service_config *cfg);

/* -------------------------------------------------------------------- close */

/* What a close does with what is pending. The lower the number, the lower the mode. */
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
 *   DRAIN   runs in its time          runs                      goes on
 *
 * At the timeout a RUN and a DRAIN become a DROP. The result is -ETIMEDOUT; 0 if a drain had only
 * timers to drop. After that:
 *
 *   mode    pending, or queued             claimed, or running
 *   DROP    none is left                   goes on; its release follows on its thread
 *   RUN     dropped, on this thread        goes on; its release follows on its thread
 *   DRAIN   dropped, on this thread        goes on; its release follows on its thread
 *
 * So no callback starts after that, except one that an executor had claimed.
 *
 * A drain is a phase, which ends when nothing is pending:
 *
 *   new timers             -ESHUTDOWN
 *   tw_reset               moves pending timers, and arms a timer again from its own callback
 *   series with a count    make all their runs
 *   series without one     end after one more run, unless their callback resets them
 *   persistent timers      are disarmed by their run, and stay so: to arm one is new work. A reset
 *                          during the run arms it
 *   background timers      go on, hold up nothing, and are dropped at the end
 *
 * A timer that arms itself again without end holds the drain up until its timeout.
 *
 * Several closes at a time have one mode, which only falls. A close with a lower mode lowers it,
 * any other close joins, and at its timeout each close lowers it to DROP. Thread A drains without a
 * timeout, then thread B closes with TW_CLOSE_DROP: B drops what A waits for, and both return 0.
 *
 *   - A disarmed timer holds up no close. It is dropped with the last others. TW_CLOSE_RUN runs an
 *     armed persistent timer, and ends it.
 *   - Completions of groups have been called when the result is 0.
 *   - Any close may wait 0.1 s for the tick thread. So TW_CLOSE_DROP with timeout 0 returns 0 if no
 *     callback runs, and no executor but a pool holds a run.
 *   - While an inline callback holds the tick thread, a close cannot refuse new timers yet. They do
 *     not run, and the next close drops them.
 *   - The handles stay valid; tw_cancel returns TW_GONE.
 *   - A release gets the fate of its timer (timer.h). Call tw_service_foreach before the close for
 *     a list of what is pending.
 *
 * Threads: any, but no callback, release or visitor of the service. Blocks at most timeout_ns, or
 * 0.1 s if that is longer; a drain 1 s more. An inline callback that does not return holds up the
 * call, and so does an exit handler (pthread_key_create) of a service's thread.
 * Calls: releases of dropped timers, on this thread. With a manual drive this thread becomes the
 * driver, and calls inline callbacks too.
 * Returns:
 *   0            closed: nothing is pending, no callback runs, the threads have ended
 *   -ETIMEDOUT   callbacks still run, or an executor still holds hand-overs of them or of a
 *                destroyed strand or the like; the service stays closed: call again, or destroy
 *                the service, which waits without limit
 *   -EBUSY       a strand, scheduler, limiter or the like still uses it: destroy that first;
 *                nothing changed
 *   -EDEADLK     called from inside; or a drain with timers pending on a manual clock; nothing
 *                changed
 *   -ENOTSUP     the kernel refuses membarrier, which it granted at creation (a sandbox entered
 *                meanwhile): nothing changed; enter the sandbox before you create the service
 *   -EINVAL      service is NULL; an unknown mode
 *   -EPERM       in a forked child
 */
TW_API int tw_service_close(tw_service *service, enum tw_close_mode mode, uint64_t timeout_ns);

/*
 * Frees the service. NULL is allowed. A service that is still open is closed with TW_CLOSE_DROP.
 * The call waits for callbacks that run, without limit.
 *
 * Threads: any, with no other call on the service at the same time. In a forked child it frees
 * memory, waits for nothing and calls nothing; -EBUSY and -EDEADLK are as here.
 * Calls: releases of dropped timers, on this thread.
 * Returns:
 *   0          freed
 *   -EBUSY     a strand, scheduler, limiter or the like still uses it; nothing changed: destroy
 *              that first
 *   -EDEADLK   called from inside; nothing changed
 */
TW_API int tw_service_destroy(tw_service *service);

/* -------------------------------------------------------------------- clock */

/*
 * Reads the service's clock: nanoseconds, the scale of deadlines.
 *
 * The time never goes back behind the tick that the driver has reached. There it stands still while
 * a manual clock is behind.
 *
 * Threads: any. Never blocks.
 * Returns: the time; 0 if service is NULL, or in a forked child.
 */
TW_API uint64_t tw_service_now(const tw_service *service);

/* ------------------------------------------------------------- manual drive */

/* As a budget: no limit. */
#define TW_NO_LIMIT SIZE_MAX

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
 * one, and completions of groups come on top. Timers that these callbacks schedule run in a later
 * call, so each call returns. A second call in the same tick, with nothing new, costs a clock read.
 *
 * Threads: one at a time; that thread is the driver. Blocks only if a callback does.
 * Returns:
 *   >= 0         callbacks run or handed over
 *   -EINVAL      service is NULL; budget is 0, or above INT_MAX and not TW_NO_LIMIT; the service
 *                has a tick thread
 *   -EBUSY       called from an inline callback, or while another thread drives: drive on one
 *                thread
 *   -ENOMEM      no memory
 *   -ESHUTDOWN   the service is closed
 *   -EPERM       in a forked child
 */
TW_API int tw_service_advance(tw_service *service, size_t budget);

/*
 * Tells when to call tw_service_advance next.
 *
 * The instant is not later than the next expiry. Now and then it is earlier, to move far timers, or
 * to give memory back after a storm. It covers all calls that happened before on any thread. If
 * other threads schedule while the loop waits, use tw_service_fd. A timer that waits at its
 * executor, and is reset to later meanwhile, is not covered until the executor has come to it: ask
 * again after the runs.
 *
 * Threads: the driver's. Never blocks, makes no system call.
 * Returns:
 *   0            *out_ns is an instant on the scale of tw_service_now; UINT64_MAX: there is
 *                nothing to do
 *   -EINVAL      NULL, or the service has a tick thread
 *   -EBUSY       called from an inline callback, or while another thread drives: call it on the
 *                driver's
 *   -ESHUTDOWN   the service is closed
 *   -EPERM       in a forked child
 */
TW_API int tw_service_next_expiry(tw_service *service, uint64_t *out_ns);

/*
 * Returns a descriptor that is readable when tw_service_advance has something to do.
 *
 * Watch it for reading, level-triggered. Never read or close it: it belongs to the service. After
 * tw_service_advance it is no longer readable, unless something is left to do now. That is so if
 * the budget was used up, a callback has scheduled for the past, a series catches up, or the
 * completion of a group is left. After a close it stays readable: take it out of the loop. The
 * first call makes it (three descriptors, close-on-exec). From then on an advance costs a system
 * call when the next expiry has changed.
 *
 * Threads: the driver's for the first call; any later. Never blocks.
 * Returns:
 *   >= 0         the descriptor
 *   -EINVAL      service is NULL, has a tick thread, or has a manual clock
 *   -EBUSY       the first call: called from an inline callback, or while another thread drives:
 *                call it before the loop
 *   -ESHUTDOWN   the first call: the service is closed
 *   -EMFILE, -ENFILE, -ENOMEM, -ENOSPC   the first call: the system has no room; nothing changed
 *   -EPERM       in a forked child
 */
TW_API int tw_service_fd(tw_service *service);

#ifdef __cplusplus
}
#endif
#endif
