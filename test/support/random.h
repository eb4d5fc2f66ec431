/* Random numbers that a seed repeats: splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014). */
#ifndef TEST_SUPPORT_RANDOM_H
#define TEST_SUPPORT_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

static inline uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* 0 .. bound - 1; slightly uneven for huge bounds, which tests do not mind. */
static inline uint64_t random_below(uint64_t *state, uint64_t bound)
{
	return random_next(state) % bound;
}

static inline bool random_percent(uint64_t *state, unsigned percent)
{
	return random_below(state, 100) < percent;
}

#endif
