#include "mpsc/base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

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
/* Generations of a process, and 1; 0: none. */
static _Atomic uint32_t moved_in; /* that moves it; 0: it runs */
static _Atomic uint32_t fixed_in; /* that has made a service */

static uint32_t generation_now(void)
{
	return tw__fork_generation(false) + 1;
}

int tw_clock_set_default(tw_clock *clock)
{
	if (clock && !clock->ops)
		return tw__bad(-EINVAL, __func__, "clock");
	int r = tw__clock_check(clock);
	if (r)
		return r;
	if (tw_load_relaxed(&fixed_in) == generation_now())
		return -EBUSY;
	tw_store_relaxed(&moved_in, clock && clock->ops->join ? generation_now() : 0);
	tw_store_release(&default_clock, clock);
	return 0;
}

/* A forked child looks at no clock that its parent moves: it may be gone. */
tw_clock *tw__clock_default(void)
{
	tw_clock *clock = tw_load_acquire(&default_clock);
	uint32_t in = tw_load_relaxed(&moved_in);
	return clock && (!in || in == generation_now()) ? clock : tw_clock_monotonic();
}

void tw__clock_default_fix(void)
{
	tw_store_relaxed(&fixed_in, generation_now());
}

/* ------------------------------------------------- the counter register */

#define MAX_AGE_NS UINT64_C(250000)
#define RATE_SPAN_NS UINT64_C(10000000) /* a rate's least span */
#define READ_GAP_COUNTS UINT64_C(3000)  /* a longer reading was interrupted */

bool tw__counter_is_the_clock(void)
{
#if defined(__x86_64__)
	unsigned a, b, c, d;
	if (!__get_cpuid(0x80000007, &a, &b, &c, &d) || !(d & 1u << 8))
		return false;
	char source[16] = "";
	FILE *file =
	    fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");
	if (!file)
		return false;
	bool is_tsc = fgets(source, sizeof source, file) && strcmp(source, "tsc\n") == 0;
	fclose(file);
	return is_tsc;
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
