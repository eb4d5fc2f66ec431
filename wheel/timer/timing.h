/* Instants that a series misses, and seeds. */
#ifndef TW_WHEEL_TIMING_H
#define TW_WHEEL_TIMING_H

#include "mpsc/base/random.h"
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
 * For a layer that draws on its own: a service's seed says all of them, in the order in which they
 * are made.
 */
static inline uint64_t tw__service_draw_seed(tw_service *service)
{
	uint64_t nth = tw_add_relaxed(&service->layers.seeds_drawn, 1);
	return tw__random_of(service->config.seed, nth);
}

#endif
