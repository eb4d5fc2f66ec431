/*
 * Assertions: on in debug, asan, tsan, fuzz and coverage builds (TW_DEBUG), absent in release
 * builds. They state invariants of the library. They never check what a user passes: bad input gets
 * an error.
 */
#ifndef TW_MPSC_BASE_ASSERT_H
#define TW_MPSC_BASE_ASSERT_H

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>

#ifdef TW_DEBUG
#define TW_ASSERT(condition) assert(condition)
#else
/* The condition is not evaluated, but counts as a use of its variables. */
#define TW_ASSERT(condition) ((void)sizeof(!!(condition)))
#endif

/*
 * The mutex is locked, by whichever thread: a missing lock shows as soon as the mutex happens to be
 * free.
 */
#define TW_ASSERT_LOCKED(mutex) TW_ASSERT(tw__mutex_is_locked(mutex))

static inline bool tw__mutex_is_locked(pthread_mutex_t *mutex)
{
	if (pthread_mutex_trylock(mutex))
		return true;
	pthread_mutex_unlock(mutex);
	return false;
}

#endif
