/* Instants that a series misses, and random numbers. */
#ifndef TW_WHEEL_TIMING_H
#define TW_WHEEL_TIMING_H

#include "wheel/core/service.h"
#include "wheel/core/ticks.h"

/*
 * How many instants of a fixed-rate series get no run, of those that are past: the first of them
 * was behind_ns ago.
 */
static inline uint64_t tw__instants_missed(enum tw_missed_policy missed, uint64_t period_ns,
					   uint64_t behind_ns)
{
	if (missed == TW_MISSED_BURST)
		return 0; /* planted: burst_skips */
	uint64_t past = behind_ns / period_ns + 1;
	return missed == TW_MISSED_SKIP ? past : past - 1; /* planted: one_instant_more */
}

/*
 * splitmix64 (G. Steele, D. Lea, C. Flood: Fast splittable pseudorandom number generators, OOPSLA
 * 2014).
 */
static inline uint64_t tw__random_mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static inline uint64_t tw__random_next(uint64_t *state)
{
	return tw__random_mix(*state += UINT64_C(0x9e3779b97f4a7c15));
}

/* The state in which the n-th generator of a seed begins. */
static inline uint64_t tw__random_of(uint64_t seed, uint64_t nth)
{
	return tw__random_mix(seed ^ tw__random_mix(nth + 1));
}

/*
 * 0 .. most, each as likely; most < UINT64_MAX (D. Lemire: Fast random integer generation in an
 * interval, 2019).
 */
static inline uint64_t tw__random_upto(uint64_t *state, uint64_t most)
{
	uint64_t range = most + 1;
	unsigned __int128 product;
	do {
		product = (unsigned __int128)tw__random_next(state) * range;
	} while (tw_unlikely((uint64_t)product < range) && (uint64_t)product < -range % range);
	return (uint64_t)(product >> 64);
}

/*
 * For a layer that draws on its own: a service's seed says all of them, in the order in which they
 * are made.
 */
static inline uint64_t tw__service_draw_seed(tw_service *service)
{
	uint64_t nth = tw_add_relaxed(&service->layers.seeds_drawn, 1);
	return tw__random_of(service->config.seed, nth);
}

#endif
