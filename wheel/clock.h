/*
 * Inside of clocks: a const table of operations behind each clock, so that tests own the time.
 */
#ifndef TW_WHEEL_CLOCK_H
#define TW_WHEEL_CLOCK_H

#include "mpsc/futex.h"
#include "tickwheel/clock.h"

/* A service on a clock that moves by hand. */
struct tw__clock_listener {
	struct tw__clock_listener *next;
	/* The clock stands at now_ns: returns when what is due has been handed over; whether there was anything, as far as it knows. */
	bool (*moved)(struct tw__clock_listener *listener, uint64_t now_ns);
	/*
	 * The next instant at which it wants to be told, later than the one it was last told; UINT64_MAX: the end of the
	 * advance will do.
	 */
	uint64_t (*next_ns)(struct tw__clock_listener *listener);
};

struct tw__clock_ops {
	uint64_t (*now)(const tw_clock *clock);
	bool runs; /* it moves by itself, and futex deadlines are on its scale */
	void (*listen)(tw_clock *clock, struct tw__clock_listener *listener);
	void (*unlisten)(tw_clock *clock, struct tw__clock_listener *listener);
};

struct tw_clock {
	const struct tw__clock_ops *ops;
};

/* Whether the calling thread is in a callback of a service on this clock (core.c). */
bool tw__clock_in_callback(const tw_clock *clock);

#endif
