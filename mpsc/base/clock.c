#include "mpsc/base/clock.h"

#include <errno.h>
#include <pthread.h>
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

/* Under the registry's lock, which a forked child can take, whatever was going on (process.h). */
static struct {
	tw_clock *clock; /* NULL: monotonic */
	/* it is a manual one; asked of the parent's in a child, where it may be gone */
	bool by_hand;
	uint64_t made; /* services that were made, or are being made */
	struct tw__origin origin;
} process;

/* A forked child has made no service yet, and cannot use a clock that its parent moves. */
static void lock_process(void)
{
	tw__process_watch(); /* if it fails, no service can be created */
	pthread_mutex_lock(&tw__registry);
	if (!tw__origin_inherited(&process.origin))
		return;
	tw__origin_init(&process.origin);
	process.made = 0;
	if (process.by_hand)
		process.clock = NULL;
	process.by_hand = false;
}

int tw_clock_set_default(tw_clock *clock)
{
	if (clock && !clock->ops)
		return tw__bad(-EINVAL, __func__, "clock");
	int r = tw__clock_check(clock);
	if (r)
		return r;
	lock_process();
	r = process.made ? -EBUSY : 0;
	if (!r) {
		process.clock = clock;
		process.by_hand = clock && !clock->ops->runs;
	}
	pthread_mutex_unlock(&tw__registry);
	return r;
}

tw_clock *tw__clock_default(void)
{
	lock_process();
	tw_clock *clock = process.clock;
	pthread_mutex_unlock(&tw__registry);
	return clock ? clock : tw_clock_monotonic();
}

void tw__clock_default_hold(bool hold)
{
	lock_process();
	process.made += hold ? 1 : (uint64_t)-1;
	pthread_mutex_unlock(&tw__registry);
}
