/*
 * Inside of clocks: a const table of operations behind each clock, so that tests own the time; and
 * a cheaper reading of the monotonic clock.
 */
#ifndef TW_MPSC_CLOCK_H
#define TW_MPSC_CLOCK_H

#include <stdalign.h>

#include "mpsc/base/atomics.h"
#include "tickwheel/clock.h"

struct tw__clock_ops {
	uint64_t (*now)(const tw_clock *clock);
	bool runs; /* it moves by itself */
	/* the kernel's clock of the same scale, for descriptors; negative: there is none */
	int id;
	/*
	 * The tick thread sleeps on the alarm, whose deadlines are on the clock's own scale. Else
	 * it sleeps on the gate's futex, whose deadlines are on CLOCK_MONOTONIC's. The gate rings
	 * on the alarm where there is one.
	 */
	bool by_alarm;
	/* A clock that calls move drives the services on it. NULL: it runs. */
	void (*join)(tw_clock *clock, void *service);
	void (*leave)(tw_clock *clock, void *service);
	/* a parent of this forked process has made it; NULL: serves children too */
	bool (*inherited)(const tw_clock *clock);
};

struct tw_clock {
	const struct tw__clock_ops *ops;
};

/*
 * The entry check of a clock: -EPERM: the parent of this forked process moves it by hand, and its
 * locks may be held forever; else 0.
 */
int tw__clock_check(const tw_clock *clock);

static inline uint64_t tw__earlier(uint64_t a_ns, uint64_t b_ns)
{
	return a_ns < b_ns ? a_ns : b_ns;
}

/*
 * The instant in timeout_ns on CLOCK_MONOTONIC: a deadline for tw__futex_wait. 0 has passed;
 * TW_FOREVER: none. Reads the clock for neither.
 */
static inline uint64_t tw__deadline_in(uint64_t timeout_ns)
{
	bool ends = timeout_ns && timeout_ns != UINT64_MAX;
	uint64_t now_ns = ends ? tw_clock_now(tw_clock_monotonic()) : 0;
	return timeout_ns > UINT64_MAX - now_ns ? UINT64_MAX : now_ns + timeout_ns;
}

/* The clock of services that name none. In a forked child never one that its parent moves. */
tw_clock *tw__clock_default(void);

/* A service has been made: the default stays what it is. */
void tw__clock_default_fix(void);

/* ------------------------------------------------- the counter register */

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
