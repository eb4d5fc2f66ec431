/*
 * The semaphore: a number of permits, for threads that wait and for functions that do not.
 *
 *     tw_semaphore *permits;
 *     tw_semaphore_create(&permits, service, NULL, 8);
 *     if (tw_semaphore_acquire(permits, 50 * TW_MILLISECOND) == 0) {
 *             ...
 *             tw_semaphore_release(permits);
 *     }
 *
 * A permit belongs to nobody: any thread may release what another has acquired. Waiters of both kinds are served in the order in which
 * they came, and nobody overtakes them: while somebody waits, a permit that comes back goes to the oldest, never to a newcomer.
 *
 * Threads: any thread may call anything at any time, also from callbacks, but destroy, which must be alone. A thread that waits
 * in a callback keeps its
 * worker. Uncontended acquire and release are one compare-and-swap each. What a thread did before it released
 * is visible to whoever gets that permit. In a forked child all calls answer -EPERM but destroy, which frees the memory.
 */
#ifndef TICKWHEEL_SEMAPHORE_H
#define TICKWHEEL_SEMAPHORE_H

#include <stddef.h>
#include <stdint.h>

#include "executor.h"
#include "service.h"
#include "version.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_semaphore tw_semaphore;

/* Handle of a function that waits for a permit: a value. All-zero is "none"; a stale handle is harmless. */
typedef struct tw_waiter {
	uint64_t id;
} tw_waiter;

/*
 * Makes a semaphore with `capacity` permits, all available; 0 is allowed. executor: what runs the functions of
 * tw_semaphore_acquire_async; NULL: whatever
 * runs the service's callbacks. Service and executor must outlive it; the service refuses to close meanwhile (-EBUSY).
 * *out is written on success only. -EINVAL: out or service NULL, capacity negative, executor without submit. -ENOMEM. -ESHUTDOWN:
 * the service or the
 * executor's pool is closed. -EPERM: forked child.
 */
TW_API int tw_semaphore_create(tw_semaphore **out, tw_service *service, tw_executor *executor, int32_t capacity);

/*
 * Frees it. Permits may be out. NULL is allowed. -EBUSY: somebody waits, or a function that has been given a permit has not
 * returned, or the executor has not yet passed over one that was cancelled after that; nothing changed. Try again.
 */
TW_API int tw_semaphore_destroy(tw_semaphore *semaphore);

/* Takes a permit if one is available. 0. -EAGAIN: none is. -EINVAL: NULL. */
TW_API int tw_semaphore_try_acquire(tw_semaphore *semaphore);

/*
 * Takes a permit; waits for it at most timeout_ns of real time, whatever clock the service has (TW_FOREVER; 0: not at all).
 * 0. -EAGAIN: none, and timeout 0. -ETIMEDOUT. -EINVAL: NULL.
 */
TW_API int tw_semaphore_acquire(tw_semaphore *semaphore, uint64_t timeout_ns);

/* The same, until an instant of tw_clock_now(tw_clock_monotonic()). A past one: -ETIMEDOUT, unless a permit is available. */
TW_API int tw_semaphore_acquire_until(tw_semaphore *semaphore, uint64_t deadline_ns);

/*
 * Has fn(arg) called with a permit, on the executor, once there is one; never inside this call or inside a release. fn, or
 * whoever it tells,
 * gives the permit back with tw_semaphore_release. No thread waits. *out (may be NULL) is written before fn can run.
 * If the executor refuses fn, the permit goes to the oldest thread that waits, and fn stays first in line for the next; if no thread waits,
 * fn keeps the permit and is offered to the executor again each tick. The context of this call goes with fn (context.h).
 * 0. -EINVAL: semaphore or fn NULL. -ENOMEM. -EAGAIN: 2^28 functions wait.
 */
TW_API int tw_semaphore_acquire_async(tw_semaphore *semaphore, tw_fn *fn, void *arg, tw_waiter *out);

/*
 * TW_CANCELLED: fn will not be called; if a permit had been handed to it already, that went to the next waiter, or back.
 * TW_RUNNING: fn is running, with its permit. TW_GONE: it has returned, was cancelled, or never was. -EINVAL: NULL.
 */
TW_API int tw_semaphore_cancel(tw_semaphore *semaphore, tw_waiter waiter);

/*
 * Gives a permit back: to the oldest waiter, or to a debt (see set_capacity), or to those available; exactly one of these.
 * 0. -EINVAL: NULL. -EOVERFLOW: no permit is out; nothing changed, but it is counted.
 */
TW_API int tw_semaphore_release(tw_semaphore *semaphore);

/*
 * Growth starts as many waiters as there are new permits. Shrinking takes what is available; what is out beyond the new capacity
 * is a debt:
 * so many of the next releases go to nobody. 0. -EINVAL: NULL, or capacity negative.
 */
TW_API int tw_semaphore_set_capacity(tw_semaphore *semaphore, int32_t capacity);

/* capacity + debt == available + held, in each snapshot. */
struct tw_semaphore_stats {
	size_t size; /* in: sizeof(struct tw_semaphore_stats) */
	uint64_t capacity;
	uint64_t available;
	uint64_t held;    /* permits that are out */
	uint64_t debt;    /* of these, beyond the capacity */
	uint64_t waiters; /* threads and functions in line */
	uint64_t waiting_threads;
	uint64_t handed;        /* functions that have a permit, and have not returned */
	uint64_t over_releases; /* answered -EOVERFLOW */
	uint64_t refused;       /* hand-overs that the executor refused */
};

/* A snapshot. -EINVAL: NULL, or size too small for `capacity`. Sizes as tw_service_stats. */
TW_API int tw_semaphore_stats(tw_semaphore *semaphore, struct tw_semaphore_stats *out);

#ifdef __cplusplus
}
#endif
#endif
