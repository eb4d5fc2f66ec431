/*
 * Assertions: on in debug, asan, tsan, fuzz and coverage builds (TW_DEBUG), absent in release
 * builds.
 *
 * TW_ASSERT states an invariant of the library. It never checks what a user passes: bad input gets
 * an error.
 */
#ifndef TW_MPSC_BASE_ASSERT_H
#define TW_MPSC_BASE_ASSERT_H

#include <pthread.h>
#include <stdbool.h>

/* Prints the condition and its place to stderr, and aborts. */
__attribute__((noreturn, cold)) void tw__assert_failed(const char *condition, const char *file,
						       int line);

#ifdef TW_DEBUG
#define TW_ASSERT(condition)                          \
	(__builtin_expect(!!(condition), 1) ? (void)0 \
					    : tw__assert_failed(#condition, __FILE__, __LINE__))
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
