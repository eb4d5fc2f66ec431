/* The counter's clock against the clock itself: never behind it, and not far ahead. */
#include <criterion/criterion.h>
#include <time.h>

#include "mpsc/base/clock.h"

static uint64_t clock_now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* For a third of a second: several publications, readings of all ages between. */
Test(clock_tsc, is_never_behind_the_clock)
{
	struct tw__counter counter;
	tw__counter_init(&counter);
	uint64_t start = clock_now();
	for (uint64_t before = start; before < start + 350000000;) {
		before = clock_now();
		uint64_t now = tw__counter_now(&counter), after = clock_now();
		cr_assert(now >= before, "%lu ns behind", before - now);
		cr_assert(now <= after + 200000, "%lu ns ahead", now - after);
	}
	if (counter.usable)
		cr_assert(tw_load_relaxed(&counter.rate) != 0, "no rate was ever measured");
}

/* A counter that may not be used is the clock. */
Test(clock_tsc, falls_back_to_the_clock)
{
	struct tw__counter counter;
	tw__counter_init(&counter);
	counter.usable = false;
	for (int i = 0; i < 1000; i++) {
		uint64_t before = clock_now(), now = tw__counter_now(&counter);
		cr_assert(now >= before && now <= clock_now());
	}
	cr_assert_eq(tw_load_relaxed(&counter.max_age), 0u);
}
