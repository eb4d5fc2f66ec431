/*
 * splitmix64 (Steele, Lea, Flood, 2014): one addition and two multiplications a draw, the same for
 * all candidates.
 */
#ifndef BENCH_RANDOM_H
#define BENCH_RANDOM_H

#include <stdint.h>

struct random {
	uint64_t state;
};

static inline uint64_t random_next(struct random *r)
{
	uint64_t z = r->state += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* Maps the high half of a draw onto 0 .. below - 1. */
static inline uint32_t random_slot(uint64_t draw, uint32_t below)
{
	return (uint32_t)(((draw >> 32) * below) >> 32);
}

/* Maps the low half of a draw onto from_ns .. to_ns. */
static inline uint64_t random_between(uint64_t draw, uint64_t from_ns, uint64_t to_ns)
{
	return from_ns + (uint64_t)(((unsigned __int128)(draw << 32) * (to_ns - from_ns)) >> 64);
}

#endif
