/*
 * Sleeping on a 32-bit word, and a small lock on one. Deadlines: CLOCK_MONOTONIC; UINT64_MAX: none.
 */
#ifndef TW_MPSC_FUTEX_H
#define TW_MPSC_FUTEX_H

#include <stdint.h>

#include "mpsc/base/assert.h"
#include "mpsc/base/atomics.h"

/*
 * Sleeps while *word == expected, until the deadline; may return early for any reason. False: timed
 * out.
 */
bool tw__futex_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t deadline_ns);

/* Wakes up to n sleepers; INT_MAX wakes all. */
void tw__futex_wake(_Atomic uint32_t *word, int n);

/* -------------------------------------------------------------- a small lock */

/*
 * A lock that is held for some stores. A thread that has spun for long sleeps a little: the holder
 * may wait for this processor. Not fair. Zero: free.
 *
 * Pairing: exchange acquire (take) reads the store-release (give up).
 */
static inline bool tw__tiny_try_lock(_Atomic uint32_t *lock)
{
	return tw_exchange_acquire(lock, 1) == 0;
}

void tw__tiny_lock_slowly(_Atomic uint32_t *lock);

static inline void tw__tiny_lock(_Atomic uint32_t *lock)
{
	if (tw_unlikely(!tw__tiny_try_lock(lock)))
		tw__tiny_lock_slowly(lock);
}

static inline void tw__tiny_unlock(_Atomic uint32_t *lock)
{
	TW_ASSERT(tw_load_relaxed(lock) == 1);
	tw_store_release(lock, 0);
}

/* Some thread holds the lock. */
#define TW_ASSERT_TINY_LOCKED(lock) TW_ASSERT(tw_load_relaxed(lock) == 1)

#endif
