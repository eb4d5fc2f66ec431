/* Assertions about locks. */
#ifndef TW_MPSC_BASE_LOCKED_H
#define TW_MPSC_BASE_LOCKED_H

#include <pthread.h>
#include <stdbool.h>

#include "mpsc/base/assert.h"

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
