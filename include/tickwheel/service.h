/*
 * Services: create, close, read the clock, and drive one from your loop. The timers are in
 * timer.h and task.h.
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

/* ------------------------------------------------------------------- memory */

/* The program's own malloc, calloc and free, which any thread may call. Each gets `user`. */
struct tw_allocator {
	size_t size;
	void *(*malloc)(void *user, size_t bytes);
	void *(*calloc)(void *user, size_t n, size_t bytes);
	void (*free)(void *user, void *memory); /* never NULL */
	void *user;
};

/*
 * Sets the allocator of all objects of this process, in both libraries. NULL: the C library's, the
 * default. Arrays of timers are mapped, not allocated: tickwheel_memory(7).
 *
 * Threads: any, before the first object of the library is created.
 * Returns:
 *   0         set
 *   -EINVAL   malloc, calloc or free is NULL
 *   -EBUSY    the library has allocated memory in this process: set it earlier
 */
TW_API int tw_set_allocator(const struct tw_allocator *allocator);

/* ------------------------------------------------------------------- create */

/* Which thread drives a service. */
enum tw_drive {
	TW_DRIVE_THREAD = 0, /* a tick thread of the service */
	TW_DRIVE_MANUAL = 1  /* the caller, with tw_service_advance */
};

/* Knobs of a service. */
struct tw_service_config {
	size_t size;
	uint64_t tick_ns;      /* resolution: 50 us .. 1 s; default 1 ms */
	uint32_t buckets;      /* of the first wheel: a power of two, 64 .. 65536; default 4096 */
	uint32_t max_timers;   /* 1 .. 2^28 timers; default 16 Mi. Up to 256 more are admitted for
				* each thread that schedules or runs callbacks, and for the tick
				* thread */
	uint32_t lane_entries; /* entries of one thread that may wait for the driver, rounded up to
				* blocks of 255, and twice as many while the driver reads them:
				* 1024 .. 2^30; default 1 Mi */
	uint32_t workers;      /* of its own pool: 1 .. 1024; default: the processors that the
				* process may use (affinity, CPU quota). 0 with an executor */
	uint32_t max_workers;  /* the most, while callbacks block (pool.h): `workers` .. 1024;
				* default 64. Both 1: callbacks run one after the other */
	enum tw_drive drive;
	tw_clock *clock;       /* NULL: the process's default. Outlives the service */
	tw_executor *executor; /* NULL: a pool of its own. Outlives the service */

	const char *thread_name; /* prefix, at most 9 bytes; default "tw": "tw-tick" and so on */
	size_t stack_size;       /* bytes of each thread's stack; default 1 MiB */
	const void *affinity;    /* a cpu_set_t of affinity_size bytes, copied; NULL: inherited */
	size_t affinity_size;
	int sched_policy;   /* of the tick thread: SCHED_OTHER (default), SCHED_FIFO, SCHED_RR */
	int sched_priority; /* not 0 for SCHED_FIFO and SCHED_RR; else 0 */

	uint64_t seed;    /* of its limiters' jitter, drawn as limiters are created; 0: random */
	const char *name; /* for tw_service_dump and Prometheus; not copied: a static string */
};

/*
 * Creates a service and its threads. cfg may be NULL.
 *
 * Returns:
 *   0            *out is the service
 *   -EINVAL      a knob is out of range; workers or max_workers with an executor
 *   -ENOMEM      no memory, or no address space
 *   -EAGAIN      a thread cannot be created: a limit of threads, of address space or, after
 *                mlockall, of locked memory. The misuse hook gets a message with these limits
 *   -EPERM       the scheduling policy is not permitted; or clock or pool belong to the parent of a
 *                forked child
 *   -ESHUTDOWN   the executor is a closed pool
 *   -EMFILE, -ENFILE, -ENOSPC   no descriptors for a tick thread on tw_clock_boottime()
 */
TW_API int tw_service_create(tw_service **out, const struct tw_service_config *cfg);

/* -------------------------------------------------------------------- close */

/* Whether a close drops, runs or drains what is pending. A lower number is a lower mode. */
enum tw_close_mode {
	TW_CLOSE_DROP = 0, /* ends it as dropped */
	TW_CLOSE_RUN = 1,  /* runs it once, now; tw_current says `closing` in it */
	TW_CLOSE_DRAIN = 2 /* waits until it has run in its time */
};

/*
 * Closes the service: refuses new work, ends the old, waits for callbacks, ends the threads.
 *
 *   mode    pending                   queued at its executor    claimed, or running
 *   DROP    dropped, on this thread   dropped, on this thread   its run is the last
 *   RUN     runs once, now            runs                      its run is the last
 *   DRAIN   runs in its time          runs                      goes on
 *
 * At the timeout a RUN or a DRAIN becomes a DROP: no callback starts any more, except one that an
 * executor had claimed. A RUN returns -ETIMEDOUT then. A DRAIN waits up to 1 s more for callbacks
 * that run, and returns 0 if they return in that time. It refuses new timers, but tw_reset of a
 * pending one works: tickwheel_close(7).
 *
 * Threads: any, but no callback, release or visitor of the service.
 * Blocks: at most timeout_ns, or 0.1 s if that is longer; a drain 1 s more. An inline callback that
 * does not return holds up the call.
 * Calls: releases of dropped timers, on this thread. With a manual drive this thread becomes the
 * driver, and calls inline callbacks too.
 * Returns:
 *   0            closed: nothing is pending, no callback runs, completions of groups have been
 *                called, the threads have ended
 *   -ETIMEDOUT   callbacks still run, or an executor still holds hand-overs; the service stays
 *                closed: call again, or destroy it, which waits without limit
 *   -EBUSY       a strand, scheduler, limiter or the like still uses it: destroy that first
 *   -EDEADLK     called from inside; or a drain with timers pending on a manual clock
 *   -ENOTSUP     the kernel refuses membarrier, which it granted at creation: enter a sandbox
 *                before you create the service
 *   -EINVAL      an unknown mode
 */
TW_API int tw_service_close(tw_service *service, enum tw_close_mode mode, uint64_t timeout_ns);

/*
 * Frees the service. NULL is allowed. A service that is open is closed with TW_CLOSE_DROP; the call
 * waits for callbacks that run, without limit. In a forked child it frees memory, and calls
 * nothing.
 *
 * Threads: any, with no other call on the service at the same time.
 * Calls: releases of dropped timers, on this thread.
 * Returns:
 *   0          freed
 *   -EBUSY     a strand, scheduler, limiter or the like still uses it: destroy that first
 *   -EDEADLK   called from inside
 */
TW_API int tw_service_destroy(tw_service *service);

/* -------------------------------------------------------------------- clock */

/*
 * Reads the service's clock: nanoseconds, the scale of deadlines. It never goes back behind the
 * tick that the driver has reached: there it stands still while a manual clock is behind.
 *
 * Returns: the time.
 */
TW_API uint64_t tw_service_now(const tw_service *service);

/* ------------------------------------------------------------- manual drive */

/* As a budget: no limit. */
#define TW_NO_LIMIT SIZE_MAX

/*
 * Runs the expired timers of a service with TW_DRIVE_MANUAL. Call it once in each turn of a loop,
 * after the sockets: a callback may free a connection whose socket is ready.
 *
 * At most `budget` callbacks run; with an executor other than tw_executor_inline() they are handed
 * over. Timers that these callbacks schedule run in a later call.
 *
 * Threads: one at a time; that thread is the driver.
 * Blocks: only if a callback does.
 * Returns:
 *   >= 0         callbacks run or handed over
 *   -EINVAL      budget is 0, or above INT_MAX and not TW_NO_LIMIT; the service has a tick thread
 *   -EBUSY       called from an inline callback, or while another thread drives
 *   -ENOMEM      no memory
 *   -ESHUTDOWN   the service is closed
 */
TW_API int tw_service_advance(tw_service *service, size_t budget);

/*
 * Tells when to call tw_service_advance next, for all calls that happened before on any thread.
 * Makes no system call. The instant is never later than the next expiry, and may be earlier.
 *
 * Threads: the driver's.
 * Returns:
 *   0            *out_ns is an instant on the scale of tw_service_now; UINT64_MAX: there is nothing
 *                to do
 *   -EINVAL      the service has a tick thread
 *   -EBUSY       called from an inline callback, or while another thread drives
 *   -ESHUTDOWN   the service is closed
 */
TW_API int tw_service_next_expiry(tw_service *service, uint64_t *out_ns);

/*
 * Returns a descriptor that is readable when tw_service_advance has something to do. Watch it for
 * reading, level-triggered. Never read or close it: it belongs to the service. After a close it
 * stays readable: take it out of the loop.
 *
 * Threads: the driver's for the first call; any later.
 * Returns:
 *   >= 0         the descriptor
 *   -EINVAL      the service has a tick thread or a manual clock
 *   -EBUSY       the first call: called from an inline callback, or while another thread drives:
 *                call it before the loop
 *   -ESHUTDOWN   the first call: the service is closed
 *   -EMFILE, -ENFILE, -ENOMEM, -ENOSPC   the first call: the system has no room
 */
TW_API int tw_service_fd(tw_service *service);

#ifdef __cplusplus
}
#endif
#endif
