/* A number that nobody can guess, to begin with: generations, places, seeds. */
#ifndef TW_MPSC_BASE_RANDOM_H
#define TW_MPSC_BASE_RANDOM_H

#include <stdint.h>
#include <sys/random.h>
#include <sys/types.h>
#include <time.h>

/* Of the kernel; early at boot it may have none yet: then of the time and of the stack's place. */
static inline uint64_t tw__random_bits(void)
{
	uint64_t bits;
	if (getrandom(&bits, sizeof bits, GRND_NONBLOCK) == (ssize_t)sizeof bits)
		return bits;
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return ((uint64_t)now.tv_nsec ^ (uintptr_t)&now) * UINT64_C(0x9e3779b97f4a7c15);
}

#endif
