/* The register's clock against the clock itself: never behind it, and not far ahead. */
#include <criterion/criterion.h>
#include <time.h>

#include "mpsc/base/clock.h"

enum { AHEAD_NS = 20000, JUMP_COUNTS = 1000000000 };

static uint64_t clock_now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* How many readings of some time were the register's. */
static unsigned read_for(struct tw__counter *counter, uint64_t span_ns)
{
	unsigned fast = 0;
	uint64_t start = clock_now();
	for (uint64_t before = start; before < start + span_ns;) {
		before = clock_now();
		uint64_t count = counter->count, now = tw__counter_now(counter),
			 after = clock_now();
		cr_assert(now >= before, "%lu ns behind", before - now);
		cr_assert(now <= after + AHEAD_NS, "%lu ns ahead", now - after);
		fast += count == counter->count;
	}
	return fast;
}

/* Several rates, readings of all ages between. */
Test(clock_tsc, is_never_behind_the_clock)
{
	struct tw__counter counter = {0};
	unsigned fast = read_for(&counter, 100000000);
	cr_assert(!tw__counter_is_the_clock() || fast > 1000, "only %u fast readings", fast);
}

/* While the system was suspended, the register ran without the clock, or began anew. */
Test(clock_tsc, is_not_behind_after_a_jump_of_the_register)
{
	struct tw__counter counter = {0};
	read_for(&counter, 50000000);
	counter.count -= JUMP_COUNTS;
	counter.from_count -= JUMP_COUNTS;
	read_for(&counter, 50000000);
	counter.count += JUMP_COUNTS;
	counter.from_count += JUMP_COUNTS;
	unsigned fast = read_for(&counter, 100000000);
	cr_assert(!tw__counter_is_the_clock() || fast > 1000, "only %u fast readings", fast);
}
