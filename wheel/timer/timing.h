/* Instants that a series misses. */
#ifndef TW_WHEEL_TIMING_H
#define TW_WHEEL_TIMING_H

#include "wheel/core/service.h"

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

#endif
