/*
 * A bell: threads sleep on it until another thread rings it. Both hold the lock of the bell's
 * owner, which a waiting thread gives up while it sleeps. Zero: nobody waits.
 */
#ifndef TW_EXECUTOR_BELL_H
#define TW_EXECUTOR_BELL_H

#include <pthread.h>

#include "mpsc/base/futex.h"

struct tw__bell {
	_Atomic uint32_t rings;
	uint32_t waiters;
};

/* Sleeps until the bell rings, or the deadline (false). May return early for any reason. */
static inline bool tw__bell_await(struct tw__bell *bell, pthread_mutex_t *lock,
				  uint64_t deadline_ns)
{
	uint32_t seen = tw_load_relaxed(&bell->rings);
	bell->waiters++;
	pthread_mutex_unlock(lock);
	bool in_time = tw__futex_wait(&bell->rings, seen, deadline_ns);
	pthread_mutex_lock(lock);
	bell->waiters--;
	return in_time;
}

static inline void tw__bell_ring(struct tw__bell *bell)
{
	if (tw_likely(!bell->waiters))
		return;
	tw_add_relaxed(&bell->rings, 1);
	tw__futex_wake(&bell->rings, INT32_MAX);
}

#endif
