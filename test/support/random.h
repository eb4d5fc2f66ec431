/* Random numbers that a seed repeats: splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014). */
#ifndef TEST_SUPPORT_RANDOM_H
#define TEST_SUPPORT_RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef RANDOM_FROM_INPUT /* a fuzzer's bytes stand in for the numbers, as long as there are any (test/fuzz) */
extern const uint8_t *random_input;
extern size_t random_input_left;

/* Most draws are for small ranges: one byte, or a mark and four. A mark with less behind it ends the input, or a program would never end. */
static inline bool random_fed(uint64_t *number)
{
	size_t size = random_input_left && *random_input >= 0xf0 ? 5 : 1;
	if (random_input_left < size) {
		random_input_left = 0;
		return false;
	}
	*number = *random_input;
	for (size_t i = 1; i < size; i++)
		*number = *number << 8 | random_input[i];
	random_input += size;
	random_input_left -= size;
	return true;
}

static inline bool random_runs_out(void)
{
	return random_input_left == 0;
}
#else
static inline bool random_fed(uint64_t *number)
{
	(void)number;
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
	return random_next(state) % bound;
}

static inline bool random_percent(uint64_t *state, unsigned percent)
{
	return random_below(state, 100) < percent;
}

#endif
