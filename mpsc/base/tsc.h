/*
 * The monotonic clock from the processor's counter register, for resets: not exact, but never
 * behind the clock.
 *
 * A published pair {count, ns} and a rate turn a reading of the counter into an instant. A reader
 * that finds the pair too old reads the clock, and publishes a new pair if no other thread does. So
 * a reading costs the register and one line that is written a few times a second.
 *
 * Never behind: the pair's count was read before its ns; the rate was measured over 10 ms or more;
 * the kernel steers its clock by at most 500 ppm, and 1/1024 of the span is added (MAX_AGE_NS: at
 * most 50 us); SPECULATION_NS covers the register being read ahead of the caller's own reading.
 * Used only where the kernel's clock runs on that very counter. (A privileged program that steers
 * the clock by percents is beyond this.)
 *
 * Pairing table
 *   TSC1  sequence: CAS acq_rel to odd, fields store-release, store-release to even -> sequence
 *       load-acquire, fields load-acquire, sequence load again: fields of one publication, or the
 *       reader goes to the clock. (H.-J. Boehm, "Can seqlocks get along with programming language
 *       memory models?", MSPC 2012.)
 */
#ifndef TW_MPSC_TSC_H
#define TW_MPSC_TSC_H

#include <stdalign.h>

#include "mpsc/base/atomics.h"

struct tw__counter {
	alignas(TW__CACHE_LINE) _Atomic uint64_t sequence; /* odd: being written */
	_Atomic uint64_t count, ns;
	_Atomic uint64_t rate;    /* ns for each count, times 2^32; 0: not measured yet */
	_Atomic uint64_t max_age; /* counts for which the pair is good */
	bool usable;
};

void tw__counter_init(struct tw__counter *counter);

/* CLOCK_MONOTONIC, or a little later. */
uint64_t tw__counter_slow_now(struct tw__counter *counter);

static inline uint64_t tw__counter_register(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#else
	return 0;
#endif
}

enum { TW__SPECULATION_NS = 200 };

static inline uint64_t tw__counter_now(struct tw__counter *counter)
{
	uint64_t sequence = tw_load_acquire(&counter->sequence);
	/* TSC1 */
	uint64_t count = tw_load_acquire(&counter->count), ns = tw_load_acquire(&counter->ns);
	uint64_t rate = tw_load_acquire(&counter->rate),
		 max_age = tw_load_acquire(&counter->max_age);
	uint64_t age = tw__counter_register() - count;
	if (tw_unlikely(sequence & 1 || age >= max_age ||
			tw_load_relaxed(&counter->sequence) != sequence))
		return tw__counter_slow_now(counter);
	uint64_t span_ns = age * rate >> 32;
	return ns + span_ns + span_ns / 1024 + TW__SPECULATION_NS;
}

#endif
