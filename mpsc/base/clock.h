/*
 * Clocks: a const table of operations each, so that tests own the time; and a cheaper reading of
 * the monotonic clock.
 */
#ifndef TW_MPSC_CLOCK_H
#define TW_MPSC_CLOCK_H

#include "mpsc/base/atomics.h"
#include "tickwheel/clock.h"

struct tw__clock_ops {
	uint64_t (*now)(const tw_clock *clock);
	bool runs; /* it moves by itself */
	/* the kernel's clock of its scale, for descriptors; negative: none */
	int id;
	/* the tick thread sleeps on the alarm: the gate's futex is monotonic */
	bool by_alarm;
	/* A clock that calls move drives the services on it. NULL: it runs. */
	void (*join)(tw_clock *clock, void *service);
	void (*leave)(tw_clock *clock, void *service);
	/* made by a parent of this forked process; NULL: serves children too */
	bool (*inherited)(const tw_clock *clock);
};

struct tw_clock {
	const struct tw__clock_ops *ops;
};

/* 0, or -EPERM: the parent of this forked process moves it. */
int tw__clock_check(const tw_clock *clock);

static inline uint64_t tw__earlier(uint64_t a_ns, uint64_t b_ns)
{
	return a_ns < b_ns ? a_ns : b_ns;
}

/* The time from one instant to another; 0 if that is not later. */
static inline uint64_t tw__span(uint64_t from_ns, uint64_t to_ns)
{
	return to_ns > from_ns ? to_ns - from_ns : 0;
}

/* The instant that comes span_ns after another; UINT64_MAX means never. */
static inline uint64_t tw__after(uint64_t instant_ns, uint64_t span_ns)
{
	return span_ns < UINT64_MAX - instant_ns ? instant_ns + span_ns : UINT64_MAX;
}

/*
 * The instant in timeout_ns on CLOCK_MONOTONIC, for tw__futex_wait. 0 has passed; TW_FOREVER: none.
 */
static inline uint64_t tw__deadline_in(uint64_t timeout_ns)
{
	bool ends = timeout_ns && timeout_ns != UINT64_MAX;
	uint64_t now_ns = ends ? tw_clock_now(tw_clock_monotonic()) : 0;
	return tw__after(now_ns, timeout_ns);
}

/* The clock of services that name none. */
tw_clock *tw__clock_default(void);

/* A service has been made: the default stays what it is. */
void tw__clock_default_fix(void);

/* In a forked child: it has made no service, and its parent's clock stands still. */
void tw__clock_default_forget(void);

/* ------------------------------------------------- the counter register */

/*
 * The monotonic clock from the processor's counter register: a microsecond late, never behind.
 *
 * Each thread has a pair {count, ns} and a rate. If the pair is older than max_age, the clock is
 * read for a new one.
 *
 * Never behind: the pair's count was read before its ns, to which TW__SPECULATION_NS are added. A
 * rate is measured over 10 ms, and 1/1024 is added: the kernel steers its clock by at most 500 ppm.
 * A rate counts when it agrees with the one before: while the system was suspended, the register
 * ran without the clock, or began anew.
 */
struct tw__counter {
	uint64_t count, ns;
	uint64_t rate;                /* ns a count, times 2^32 */
	uint64_t max_age;             /* counts; 0: the rate does not count */
	uint64_t from_count, from_ns; /* where the next rate begins */
};

/* A processor may read the register ahead of earlier instructions. */
enum { TW__SPECULATION_NS = 200 };

/* The register runs at one speed on all processors, and the kernel's clock on it. */
bool tw__counter_is_the_clock(void);

/* Reads the clock, and makes a new pair of it. */
uint64_t tw__counter_read(struct tw__counter *counter);

/* Reads CLOCK_MONOTONIC by the register. Call it only if the register is the clock. */
static inline uint64_t tw__counter_now(struct tw__counter *counter)
{
#if defined(__x86_64__)
	uint64_t age = __builtin_ia32_rdtsc() - counter->count;
	if (tw_likely(age < counter->max_age))
		return counter->ns + (age * counter->rate >> 32);
#endif
	return tw__counter_read(counter);
}

#endif
