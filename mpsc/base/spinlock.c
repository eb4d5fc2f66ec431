#include "mpsc/base/spinlock.h"

#include <time.h>

#include "mpsc/base/futex.h"

enum { SPINS = 100, NAP_NS = 50000 };

static uint64_t nap_from_now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec + NAP_NS;
}

void tw__tiny_lock_slowly(_Atomic uint32_t *lock)
{
	/* only looks while it is held: a try would take the line from the holder */
	for (unsigned spins = 1; tw_load_relaxed(lock) || !tw__tiny_try_lock(lock); spins++) {
		if (spins % SPINS)
			tw_cpu_relax();
		else /* nobody wakes us: the time runs out */
			tw__futex_wait(lock, 1, nap_from_now());
	}
}
