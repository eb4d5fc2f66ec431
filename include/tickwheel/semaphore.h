/*
 * The semaphore: a number of permits, for threads that wait and for functions that do not.
 *
 *     tw_semaphore *permits;
 *     tw_semaphore_create(&permits, service, NULL, 8);
 *     if (tw_semaphore_acquire(permits, 1, 50 * TW_MILLISECOND) == 0) {
 *             ...
 *             tw_semaphore_release(permits, 1);
 *     }
 *
 * Any thread may release what another has acquired. Waiters of both kinds are served in the order
 * in which they came; a permit that returns goes to the oldest waiter, never to a newcomer. What a
 * thread did before a release is visible to the one that gets the permit.
 *
 * A call takes or gives n permits as one. A waiter for n permits keeps its place: nobody behind it
 * is served first, even if fewer permits would do for them. So it waits only for those who came
 * before it.
 *
 * An acquire or release without contention is one compare-and-swap. A thread that waits inside a
 * callback keeps its worker.
 *
 * Threads: any thread may call anything at any time, also from callbacks; only destroy must be
 * alone. In a forked child each call returns -EPERM, and destroy frees the memory.
 */
#ifndef TICKWHEEL_SEMAPHORE_H
#define TICKWHEEL_SEMAPHORE_H

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

typedef struct tw_semaphore tw_semaphore;

/*
 * Handle of a function that waits for a permit: a value. All-zero is "none"; a stale one is
 * harmless.
 */
typedef struct tw_waiter {
	uint64_t id;
} tw_waiter;

/*
 * Creates a semaphore with `capacity` permits, all available; 0 is allowed.
 *
 * executor runs the functions of tw_semaphore_acquire_async; NULL: the service's. Service and
 * executor must outlive the semaphore; the service returns -EBUSY to a close meanwhile.
 *
 * Threads: any.
 * Returns:
 *   0            *out is the semaphore; on an error *out is not written
 *   -EINVAL      out or service is NULL; capacity is negative; an executor whose ops are incomplete
 *   -ENOMEM      no memory
 *   -ESHUTDOWN   the service or the pool is closed
 *   -EPERM       in a forked child
 */
TW_API int tw_semaphore_create(tw_semaphore **out, tw_service *service, tw_executor *executor,
			       int32_t capacity);

/*
 * Frees the semaphore. Permits may be out. NULL is allowed.
 *
 * Threads: any, with no other call beside it.
 * Returns:
 *   0        freed
 *   -EBUSY   somebody waits, or a function that has a permit has not returned, or the executor
 *            holds a cancelled one; nothing changed: cancel those that wait, and call again
 */
TW_API int tw_semaphore_destroy(tw_semaphore *semaphore);

/*
 * Takes n permits, and waits for them: all or none.
 *
 * Give them back with tw_semaphore_release, in one call or in parts. The timeout is real time,
 * whatever the service's clock. With a timeout of 0 it takes what is available, or nothing.
 *
 * If the capacity shrinks below n while a caller waits for n permits, the caller waits until the
 * capacity has grown again, and all behind it wait too.
 *
 * Threads: any. Blocks at most timeout_ns (TW_FOREVER: without limit).
 * Returns:
 *   0            taken
 *   -ETIMEDOUT   they did not come in time
 *   -EAGAIN      timeout_ns is 0, and n are not available: give it a timeout to wait
 *   -EINVAL      semaphore is NULL; n is below 1; n is above 1 and above the capacity
 *   -EPERM       in a forked child
 */
TW_API int tw_semaphore_acquire(tw_semaphore *semaphore, int32_t n, uint64_t timeout_ns);

/*
 * Calls fn(arg) with n permits as soon as there are n, on the executor. No thread waits.
 *
 * fn never runs inside this call or inside a release. fn, or another one on its behalf, gives the
 * permits back. *out (may be NULL) is written before fn can run. If the executor refuses fn, its
 * permits go to the threads that wait, and fn stays first in line. It is offered again at the next
 * tick, and whenever permits return.
 *
 * Threads: any. Never blocks.
 * Returns:
 *   0         fn will be called, unless it is cancelled
 *   -EAGAIN   2^28 functions wait: try again
 *   -ENOMEM   no memory
 *   -EINVAL   semaphore or fn is NULL; n is below 1; n is above 1 and above the capacity
 *   -EPERM    in a forked child
 */
TW_API int tw_semaphore_acquire_async(tw_semaphore *semaphore, int32_t n, tw_fn *fn, void *arg,
				      tw_waiter *out);

/*
 * Cancels a function that waits for permits. Permits that it had been given go to the next
 * waiters.
 *
 * Threads: any. Never blocks.
 * Returns:
 *   TW_CANCELLED   fn will not be called
 *   TW_RUNNING     fn is running, with its permit
 *   TW_GONE        fn has returned, was cancelled, or never was
 *   -EINVAL        semaphore is NULL
 *   -EPERM         in a forked child
 */
TW_API int tw_semaphore_cancel(tw_semaphore *semaphore, tw_waiter waiter);

/*
 * Gives n permits back: to the oldest waiters, else to a debt (tw_semaphore_set_capacity), else to
 * those available.
 *
 * Permits have no identity. Give each one back once: a second time is noticed only if fewer than n
 * permits are out at that moment.
 *
 * Threads: any. Never blocks.
 * Returns:
 *   0            given back
 *   -EOVERFLOW   fewer than n permits are out; nothing changed, and it is counted once
 *   -EINVAL      semaphore is NULL, or n is below 1
 *   -EPERM       in a forked child
 */
TW_API int tw_semaphore_release(tw_semaphore *semaphore, int32_t n);

/*
 * Changes the number of permits.
 *
 * Growth serves the oldest waiters for whom the new permits do. Shrinking takes available permits;
 * what is out beyond the new capacity is a debt, which the next releases pay.
 *
 * Threads: any. Never blocks.
 * Returns:
 *   0         changed
 *   -EINVAL   semaphore is NULL, or capacity is negative
 *   -EPERM    in a forked child
 */
TW_API int tw_semaphore_set_capacity(tw_semaphore *semaphore, int32_t capacity);

/* Gauges and counters. In each snapshot, capacity + debt == available + held. */
struct tw_semaphore_stats {
	size_t size; /* in: sizeof(struct tw_semaphore_stats) */
	uint64_t capacity;
	uint64_t available;
	uint64_t held;    /* permits that are out */
	uint64_t debt;    /* of these, beyond the capacity */
	uint64_t waiters; /* threads and functions in line */
	uint64_t waiting_threads;
	/*
	 * Functions that have a permit and have not returned, and cancelled ones that the executor
	 * still has.
	 */
	uint64_t handed;
	uint64_t over_releases; /* returned -EOVERFLOW */
	uint64_t refused;       /* hand-overs that the executor refused */
};

/*
 * Reads a semaphore's statistics. An older or newer `size` is fine, as with tw_service_stats.
 *
 * Threads: any. Never blocks.
 * Returns:
 *   0         *out is filled
 *   -EINVAL   NULL, or out->size is too small for `capacity`
 *   -EPERM    in a forked child
 */
TW_API int tw_semaphore_stats(tw_semaphore *semaphore, struct tw_semaphore_stats *out);

#ifdef __cplusplus
}
#pragma GCC diagnostic pop
#endif
#endif
