/* What scheduling and looking at timers share. */
#ifndef TW_WHEEL_SCHEDULE_H
#define TW_WHEEL_SCHEDULE_H

#include "wheel/core.h"

/*
 * An UNFILED word's deadline bits, for tw_remaining: the upper bits of its deadline's tick. How many ticks one step of them is, is chosen
 * so that the longest delay fits: half a minute at ticks of 1 ms, for timers that are hours away.
 */
static inline unsigned tw__hint_shift(const tw_service *service)
{
	uint64_t longest = TW_MAX_DELAY_NS / service->tick_ns;
	return 65 - (unsigned)__builtin_clzll(longest) - TW__DEADLINE_BITS;
}

/* The gate refuses: why? -EPERM: a forked child. -ESHUTDOWN: closed, and this thread has noticed. */
int tw__refused_by_gate(tw_service *service);

#endif
