/*
 * The semaphore: a number of permits, for threads that wait and for functions that do not. Both are
 * served in the order in which they came.
 *
 *     tw_semaphore *permits;
 *     tw_semaphore_create(&permits, service, NULL, 8);
 *     if (tw_semaphore_acquire(permits, 1, 50 * TW_MILLISECOND) == 0) {
 *             ...
 *             tw_semaphore_release(permits, 1);
 *     }
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
 * Handle of a function that waits: a value. All-zero is "none"; a stale handle is harmless.
 */
typedef struct tw_waiter {
	uint64_t id;
} tw_waiter;

/*
 * Creates a semaphore with `capacity` permits, all available; 0 is allowed.
 *
 * executor runs the functions of tw_semaphore_acquire_async; NULL: the service's. Both must outlive
 * the semaphore; a close of the service returns -EBUSY meanwhile.
 *
 * Returns:
 *   0            *out is the semaphore
 *   -EINVAL      capacity is negative; an executor whose ops are incomplete
 *   -ENOMEM      no memory
 *   -ESHUTDOWN   the service or the pool is closed
 */
TW_API int tw_semaphore_create(tw_semaphore **out, tw_service *service, tw_executor *executor,
			       int32_t capacity);

/*
 * Frees the semaphore, also while permits are held. NULL is allowed.
 *
 * Returns:
 *   0        freed
 *   -EBUSY   somebody waits, or a function has not returned, or the executor holds a cancelled
 *            one: cancel those that wait, and call again
 */
TW_API int tw_semaphore_destroy(tw_semaphore *semaphore);

/*
 * Takes n permits, and waits for them: all or none. The timeout is real time, whatever the
 * service's clock.
 *
 * Blocks: at most timeout_ns.
 * Returns:
 *   0            taken: give them back in one call or in parts
 *   -ETIMEDOUT   they did not come in time
 *   -EAGAIN      timeout_ns is 0, and n are not available: give it a timeout to wait
 *   -EINVAL      n is below 1; n is above 1 and above the capacity
 */
TW_API int tw_semaphore_acquire(tw_semaphore *semaphore, int32_t n, uint64_t timeout_ns);

/*
 * Calls fn(arg) with n permits as soon as there are n, on the executor, never inside this call or a
 * release. No thread waits. fn, or another one on its behalf, gives the permits back. *out (may be
 * NULL) is written before fn can run.
 *
 * Returns:
 *   0         fn will be called, unless it is cancelled
 *   -EAGAIN   2^28 functions and tasks of the service's semaphores and strands wait: try again
 *   -ENOMEM   no memory
 *   -EINVAL   n is below 1; n is above 1 and above the capacity
 */
TW_API int tw_semaphore_acquire_async(tw_semaphore *semaphore, int32_t n, tw_fn *fn, void *arg,
				      tw_waiter *out);

/*
 * Cancels a function that waits for permits. Permits that it had been given go to the next waiters.
 *
 * Returns:
 *   TW_CANCELLED   fn will not be called
 *   TW_RUNNING     fn is running, with its permit
 *   TW_GONE        fn has returned, was cancelled, or never was
 */
TW_API int tw_semaphore_cancel(tw_semaphore *semaphore, tw_waiter waiter);

/*
 * Gives n permits back: to the oldest waiters, else to a debt (tw_semaphore_set_capacity), else to
 * those available. Permits have no identity. Give each one back once: a second time is noticed only
 * if fewer than n permits are out at that moment.
 *
 * Returns:
 *   0            given back
 *   -EOVERFLOW   fewer than n permits are held; over_releases counts the call once
 *   -EINVAL      n is below 1
 */
TW_API int tw_semaphore_release(tw_semaphore *semaphore, int32_t n);

/*
 * Changes the number of permits. Growth serves the oldest waiters. Shrinking takes available
 * permits; what is out beyond the new capacity is a debt, which the next releases pay.
 *
 * Returns:
 *   0         changed
 *   -EINVAL   capacity is negative
 */
TW_API int tw_semaphore_set_capacity(tw_semaphore *semaphore, int32_t capacity);

/* Gauges and counters. In each snapshot, capacity + debt == available + held. */
struct tw_semaphore_stats {
	size_t size;
	uint64_t capacity;
	uint64_t available;
	uint64_t held;    /* permits that are out */
	uint64_t debt;    /* of these, beyond the capacity */
	uint64_t waiters; /* threads and functions in line */
	uint64_t waiting_threads;
	uint64_t handed;        /* functions with a permit, and cancelled ones, at the executor */
	uint64_t over_releases; /* returned -EOVERFLOW */
	uint64_t refused;       /* hand-overs that the executor refused */
};

/*
 * Reads a semaphore's statistics.
 *
 * Returns:
 *   0         *out is filled
 *   -EINVAL   out->size is too small for `capacity`
 */
TW_API int tw_semaphore_stats(tw_semaphore *semaphore, struct tw_semaphore_stats *out);

/*
 * Names the semaphore, as tw_strand_set_name does a strand.
 *
 * Returns:
 *   0   named
 */
TW_API int tw_semaphore_set_name(tw_semaphore *semaphore, const char *name);

#ifdef __cplusplus
}
#pragma GCC diagnostic pop
#endif
#endif
