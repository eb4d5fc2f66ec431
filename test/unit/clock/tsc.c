/* The register's clock against the clock itself: never behind it, and not far ahead. */
#include <criterion/criterion.h>
#include <time.h>

#include "mpsc/base/clock.h"

enum { AHEAD_NS = 20000, JUMP_COUNTS = 1000000000, WANTED = 1000 };
#define LONGEST_NS UINT64_C(30000000000)

static uint64_t clock_now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/*
 * Reads for some time, and on until some readings were the register's: a thread that is often
 * interrupted takes longer to know a rate. How many they were.
 */
static unsigned read_for(struct tw__counter *counter, uint64_t span_ns, unsigned wanted)
{
	unsigned fast = 0;
	uint64_t start = clock_now();
	uint64_t most_ns = tw__counter_is_the_clock() ? LONGEST_NS : 0;
	for (uint64_t before = start;
	     before < start + span_ns || (fast < wanted && before < start + most_ns);) {
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
	unsigned fast = read_for(&counter, 100000000, WANTED);
	cr_assert(!tw__counter_is_the_clock() || fast >= WANTED, "only %u fast readings", fast);
}

/* While the system was suspended, the register ran without the clock, or began anew. */
Test(clock_tsc, is_not_behind_after_a_jump_of_the_register)
{
	struct tw__counter counter = {0};
	read_for(&counter, 50000000, 0);
	counter.count -= JUMP_COUNTS;
	counter.from_count -= JUMP_COUNTS;
	read_for(&counter, 50000000, 0);
	counter.count += JUMP_COUNTS;
	counter.from_count += JUMP_COUNTS;
	unsigned fast = read_for(&counter, 100000000, WANTED);
	cr_assert(!tw__counter_is_the_clock() || fast >= WANTED, "only %u fast readings", fast);
}
