/*
 * Assertions, on in builds with TW_DEBUG. They state invariants of the library, and check nothing
 * that a user passes.
 */
#ifndef TW_MPSC_BASE_ASSERT_H
#define TW_MPSC_BASE_ASSERT_H

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>

#ifdef TW_DEBUG
#define TW_ASSERT(condition) assert(condition)
#else
/* The condition is not evaluated, but uses its variables. */
#define TW_ASSERT(condition) ((void)sizeof(!!(condition)))
#endif

/* Some thread holds the mutex. */
#define TW_ASSERT_LOCKED(mutex) TW_ASSERT(tw__mutex_is_locked(mutex))

static inline bool tw__mutex_is_locked(pthread_mutex_t *mutex)
{
	if (pthread_mutex_trylock(mutex))
		return true;
	pthread_mutex_unlock(mutex);
	return false;
}

#endif
