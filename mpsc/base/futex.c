#include "mpsc/base/futex.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "mpsc/base/clock.h"

bool tw__futex_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t deadline_ns)
{
	struct timespec deadline = {.tv_sec = (time_t)(deadline_ns / 1000000000u),
				    .tv_nsec = (long)(deadline_ns % 1000000000u)};
	/* only this form takes an absolute deadline */
	long r =
	    syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, expected,
		    deadline_ns == UINT64_MAX ? NULL : &deadline, NULL, FUTEX_BITSET_MATCH_ANY);
	return !(r == -1 && errno == ETIMEDOUT);
}

void tw__futex_wake(_Atomic uint32_t *word, int n)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}

/* -------------------------------------------------------------- a small lock */

enum { SPINS = 100, NAP_NS = 50000 };

void tw__tiny_lock_slowly(_Atomic uint32_t *lock)
{
	/* only looks while it is held: a try takes the line from the holder */
	for (unsigned spins = 1; tw_load_relaxed(lock) || !tw__tiny_try_lock(lock); spins++) {
		if (spins % SPINS)
			tw_cpu_relax();
		else /* nobody wakes us: the time runs out */
			tw__futex_wait(lock, 1, tw__deadline_in(NAP_NS));
	}
}
