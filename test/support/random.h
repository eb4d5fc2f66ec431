/*
 * Random numbers that a seed repeats: splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom
 * number generators, 2014).
 */
#ifndef TEST_SUPPORT_RANDOM_H
#define TEST_SUPPORT_RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A fuzzer's bytes replace the numbers, as long as there are any (test/fuzz). */
#ifdef RANDOM_FROM_INPUT
extern const uint8_t *random_input;
extern size_t random_input_left;

/* Takes `size` bytes. Where fewer are left the input has ended, or a program would never end. */
static inline bool random_take(uint64_t *number, size_t size)
{
	if (random_input_left < size) {
		random_input_left = 0;
		return false;
	}
	*number = 0;
	for (size_t i = 0; i < size; i++)
		*number = *number << 8 | random_input[i];
	random_input += size;
	random_input_left -= size;
	return true;
}

/* Most draws are for small ranges: one byte, or a mark and four. */
static inline bool random_fed(uint64_t *number)
{
	return random_take(number, random_input_left && *random_input >= 0xf0 ? 5 : 1);
}

/*
 * As many bytes as the bound has: small choices cost one, and the farthest instants can be named.
 */
static inline bool random_fed_below(uint64_t *number, uint64_t bound)
{
	size_t size = 1;
	while (size < 8 && bound >> 8 * size)
		size++;
	return random_take(number, size);
}

static inline bool random_runs_out(void)
{
	return random_input_left == 0;
}
#else
static inline bool random_fed(uint64_t *number)
{
	return false;
}

static inline bool random_fed_below(uint64_t *number, uint64_t bound)
{
	return false;
}

static inline bool random_runs_out(void)
{
	return false;
}
#endif

static inline uint64_t random_next(uint64_t *state)
{
	uint64_t fed;
	if (random_fed(&fed))
		return fed;
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* 0 .. bound - 1; slightly uneven for huge bounds, which tests do not mind. */
static inline uint64_t random_below(uint64_t *state, uint64_t bound)
{
	uint64_t fed;
	return (random_fed_below(&fed, bound) ? fed : random_next(state)) % bound;
}

static inline bool random_percent(uint64_t *state, unsigned percent)
{
	return random_below(state, 100) < percent;
}

#endif
