#include "mpsc/base/clock.h"

#include <errno.h>
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
/* Generations of a process (process.h) and 1; 0: none. */
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
