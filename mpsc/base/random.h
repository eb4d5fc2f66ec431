#ifndef TW_MPSC_BASE_RANDOM_H
#define TW_MPSC_BASE_RANDOM_H

#include <stdint.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/*
 * Bits that nobody can guess. Early at boot the kernel may have none. The C library's getrandom
 * would be a cancellation point.
 */
static inline uint64_t tw__random_bits(void)
{
	uint64_t bits;
	if (syscall(SYS_getrandom, &bits, sizeof bits, GRND_NONBLOCK) == (long)sizeof bits)
		return bits;
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return ((uint64_t)now.tv_nsec ^ (uintptr_t)&now) * UINT64_C(0x9e3779b97f4a7c15);
}

/* splitmix64. */
static inline uint64_t tw__random_mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* The first state of a seed's n-th generator. */
static inline uint64_t tw__random_of(uint64_t seed, uint64_t nth)
{
	return tw__random_mix(seed ^ tw__random_mix(nth + 1));
}

/* 0 .. most, each as likely; most < UINT64_MAX (D. Lemire, 2019). */
static inline uint64_t tw__random_upto(uint64_t *state, uint64_t most)
{
	uint64_t range = most + 1, drawn;
	unsigned __int128 product;
	do {
		drawn = tw__random_mix(*state += UINT64_C(0x9e3779b97f4a7c15));
		product = (unsigned __int128)drawn * range;
	} while ((uint64_t)product < range && (uint64_t)product < -range % range);
	return (uint64_t)(product >> 64);
}

#endif
