#include "mpsc/base/tsc.h"

#include <stdio.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "mpsc/base/clock.h"

#define MAX_AGE_NS UINT64_C(50000000)
#define RATE_SPAN_NS UINT64_C(10000000) /* a rate is measured over no less */
#define READ_GAP_COUNTS UINT64_C(3000)  /* a longer reading of the clock was interrupted */

/* The counter runs at one speed on all processors, and the kernel's clock runs on it. */
static bool counter_is_the_clock(void)
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
	bool tsc = fgets(source, sizeof source, file) && strcmp(source, "tsc\n") == 0;
	fclose(file);
	return tsc;
#else
	return false;
#endif
}

void tw__counter_init(struct tw__counter *counter)
{
	memset(counter, 0, sizeof *counter);
	counter->usable = counter_is_the_clock();
}

/*
 * A new pair and, if the last one is old enough to measure by, a new rate. The sequence is odd, and
 * ours.
 */
static void tsc_publish(struct tw__counter *counter, uint64_t count, uint64_t ns)
{
	uint64_t last_count = tw_load_relaxed(&counter->count),
		 last_ns = tw_load_relaxed(&counter->ns);
	uint64_t rate = tw_load_relaxed(&counter->rate);
	if (last_ns && ns - last_ns < RATE_SPAN_NS)
		return; /* the old pair serves to measure the rate by */
	if (last_ns)
		rate = (uint64_t)(((unsigned __int128)(ns - last_ns) << 32) / (count - last_count));
	uint64_t max_age = rate ? (uint64_t)(((unsigned __int128)MAX_AGE_NS << 32) / rate) : 0;
	tw_store_release(&counter->count, count); /* TSC1 */
	tw_store_release(&counter->ns, ns);
	tw_store_release(&counter->rate, rate);
	tw_store_release(&counter->max_age, max_age);
}

uint64_t tw__counter_slow_now(struct tw__counter *counter)
{
	uint64_t count = tw__counter_register(), ns = tw_clock_now(tw_clock_monotonic());
	if (!counter->usable || tw__counter_register() - count > READ_GAP_COUNTS)
		return ns;
	uint64_t sequence = tw_load_relaxed(&counter->sequence);
	if (sequence & 1 || !tw_cas_acq_rel(&counter->sequence, &sequence, sequence + 1)) /* TSC1 */
		return ns;
	tsc_publish(counter, count, ns);
	tw_store_release(&counter->sequence, sequence + 2);
	return ns;
}
