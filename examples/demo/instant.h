/*
 * Time as the demo measures it: with the system's clock, not with the library whose timers it
 * judges.
 */
#ifndef EXAMPLES_DEMO_INSTANT_H
#define EXAMPLES_DEMO_INSTANT_H

#include <stdint.h>
#include <time.h>

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)

static inline uint64_t instant_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static inline void sleep_until_ns(uint64_t when_ns)
{
	struct timespec t = {.tv_sec = (time_t)(when_ns / NS_PER_S),
			     .tv_nsec = (long)(when_ns % NS_PER_S)};
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0)
		;
}

static inline double in_ms(uint64_t ns)
{
	return (double)ns / 1e6;
}

#endif
