#include "mpsc/base/clock.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "mpsc/base/entry.h"

uint64_t tw_clock_now(const tw_clock *clock)
{
	return clock ? clock->ops->now(clock) : 0;
}

/* ---------------------------------------------------------------- the kernel's */

static uint64_t kernel_now(const tw_clock *clock)
{
	struct timespec now;
	clock_gettime(clock->ops->id, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

tw_clock *tw_clock_monotonic(void)
{
	static const struct tw__clock_ops ops = {
	    .now = kernel_now,
	    .runs = true,
	    .id = CLOCK_MONOTONIC,
	};
	static tw_clock monotonic = {&ops};
	return &monotonic;
}

tw_clock *tw_clock_boottime(void)
{
	static const struct tw__clock_ops ops = {
	    .now = kernel_now,
	    .runs = true,
	    .id = CLOCK_BOOTTIME,
	    .by_alarm = true, /* a futex knows CLOCK_MONOTONIC and CLOCK_REALTIME only */
	};
	static tw_clock boottime = {&ops};
	return &boottime;
}

int tw__clock_check(const tw_clock *clock)
{
	return clock && clock->ops->inherited && clock->ops->inherited(clock) ? -EPERM : 0;
}

/* ------------------------------------------------------------------ default */

static _Atomic(tw_clock *) default_clock; /* NULL: the monotonic one */
static _Atomic bool default_is_fixed;     /* a service has been made */
static _Atomic bool default_is_moved;     /* by this process */

int tw_clock_set_default(tw_clock *clock)
{
	if (clock && !clock->ops)
		return tw__bad(-EINVAL, __func__, "clock");
	int r = tw__clock_check(clock);
	if (r || tw_load_relaxed(&default_is_fixed))
		return r ? r : -EBUSY;
	tw_store_relaxed(&default_is_moved, clock && clock->ops->join);
	tw_store_release(&default_clock, clock);
	return 0;
}

tw_clock *tw__clock_default(void)
{
	tw_clock *clock = tw_load_acquire(&default_clock);
	return clock ? clock : tw_clock_monotonic();
}

void tw__clock_default_fix(void)
{
	tw_store_relaxed(&default_is_fixed, true);
}

void tw__clock_default_forget(void)
{
	tw_store_relaxed(&default_is_fixed, false);
	if (tw_load_relaxed(&default_is_moved))
		tw_store_relaxed(&default_clock, NULL);
}

/* ------------------------------------------------- the counter register */

#define MAX_AGE_NS UINT64_C(250000)
#define RATE_SPAN_NS UINT64_C(10000000) /* a rate's least span */
#define READ_GAP_COUNTS UINT64_C(3000)  /* a longer reading was interrupted */

bool tw__counter_is_the_clock(void)
{
#if defined(__x86_64__)
	/* only if it runs evenly, and equally on all processors */
	char source[16];
	return tw__file_scan("", "/sys/devices/system/clocksource/clocksource0/current_clocksource",
			     "%15s", source) == 1 &&
	       strcmp(source, "tsc") == 0;
#else
	return false;
#endif
}

/* The first rate is since the system's start: a guess. */
static void measure_rate(struct tw__counter *counter, uint64_t count, uint64_t ns)
{
	uint64_t span_ns = ns - counter->from_ns, counts = count - counter->from_count;
	if (span_ns < RATE_SPAN_NS)
		return;
	uint64_t rate = (uint64_t)(((unsigned __int128)span_ns << 32) / (counts | 1)),
		 former = counter->rate;
	rate += rate / 1024;
	bool agree = (rate > former ? rate - former : former - rate) < rate / 512;
	counter->max_age = agree ? (MAX_AGE_NS << 32) / rate : 0;
	counter->rate = rate;
	counter->from_count = count;
	counter->from_ns = ns;
}

uint64_t tw__counter_read(struct tw__counter *counter)
{
#if defined(__x86_64__)
	uint64_t count = __builtin_ia32_rdtsc(), ns = tw_clock_now(tw_clock_monotonic());
	if (__builtin_ia32_rdtsc() - count > READ_GAP_COUNTS)
		return ns;
	measure_rate(counter, count, ns);
	counter->count = count;
	counter->ns = ns + TW__SPECULATION_NS;
	return ns;
#else
	(void)counter;
	return tw_clock_now(tw_clock_monotonic());
#endif
}
