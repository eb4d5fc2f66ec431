/*
 * Inside of clocks: a const table of operations behind each clock, so that tests own the time.
 */
#ifndef TW_MPSC_CLOCK_H
#define TW_MPSC_CLOCK_H

#include "mpsc/base/atomics.h"
#include "tickwheel/clock.h"

struct tw_service;

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
	/* A clock that calls move drives its services. NULL: it runs. */
	void (*join)(tw_clock *clock, struct tw_service *service);
	void (*leave)(tw_clock *clock, struct tw_service *service);
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

#endif
