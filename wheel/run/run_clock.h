/*
 * The instants of runs in a row: each ends where the next begins, and most take less time than a
 * reading of the clock.
 *
 * After a few readings, where the clock runs on the counter register, the register goes on
 * from the last of them, for SPAN_COUNTS at most (some 100 us, in which the kernel steers its clock
 * by less than 100 ns). Such instants are for statistics and liveness. Code that decides something
 * reads the clock: tw__run_clock_exact.
 */
#ifndef TW_WHEEL_RUN_CLOCK_H
#define TW_WHEEL_RUN_CLOCK_H

#include "wheel/core/service.h"

enum {
	TW__RUN_CLOCK_READINGS = 3,
	TW__RUN_CLOCK_SPAN_COUNTS = 1 << 18,
	TW__RUN_CLOCK_GAP_COUNTS = 3000
};

/* A thread's, for as long as it runs one thing after the other. All zero: nothing was read yet. */
struct tw__run_clock {
	uint64_t now_ns;           /* the last reading; 0: none */
	uint64_t base_ns;          /* where the register goes on from; 0: not at all */
	uint64_t base_count, rate; /* rate: as the counter's */
	unsigned readings;
	bool estimated; /* now_ns is the register's */
};

/* Reads the clock, and the register beside it, if nothing came between the two. */
static inline void tw__run_clock_base(struct tw__run_clock *clock, tw_service *service)
{
	uint64_t before = tw__counter_register(), ns = tw__clock_read(service),
		 count = tw__counter_register();
	clock->now_ns = ns;
	clock->estimated = false;
	clock->rate = tw_load_relaxed(&service->counter.rate);
	clock->base_ns = clock->rate && count - before < TW__RUN_CLOCK_GAP_COUNTS ? ns : 0;
	clock->base_count = count;
	if (tw_unlikely(!clock->rate))
		(void)tw__counter_now(&service->counter); /* has it measured */
}

static inline uint64_t tw__run_clock_exact(struct tw__run_clock *clock, const tw_service *service)
{
	clock->estimated = false;
	return clock->now_ns = tw__clock_read(service);
}

static inline uint64_t tw__run_clock_read(struct tw__run_clock *clock, tw_service *service)
{
	uint64_t age = clock->base_ns ? tw__counter_register() - clock->base_count : UINT64_MAX;
	clock->estimated = age < TW__RUN_CLOCK_SPAN_COUNTS;
	if (tw_likely(clock->estimated))
		clock->now_ns = clock->base_ns + (age * clock->rate >> 32);
	else if (service->counter.usable && ++clock->readings >= TW__RUN_CLOCK_READINGS)
		tw__run_clock_base(clock, service);
	else
		clock->now_ns = tw__clock_read(service);
	return clock->now_ns;
}

#endif
