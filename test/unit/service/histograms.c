/*
 * Distributions: their buckets, windows between two readings, percentiles.
 */
#include <math.h>
#include <stdlib.h>

#include "test/support/rig_suite.h"
#include "mpsc/base/histogram.h"

TestSuite(service_histograms, .init = open_rig, .fini = close_rig, .timeout = 60);

static struct tw_service_histograms read_of(tw_service *service)
{
	struct tw_service_histograms out = {.size = sizeof out};
	expect_eq(tw_service_histograms(service, &out), 0);
	return out;
}

/* ------------------------------------------------------------------ buckets */

Test(service_histograms, bounds_grow_by_an_eighth_and_have_each_power_of_two)
{
	unsigned powers = 0;
	expect_eq(tw__histogram_bound(0), 1);
	for (unsigned i = 1; i < TW_HISTOGRAM_BUCKETS; i++) {
		uint64_t low = tw__histogram_bound(i - 1), high = tw__histogram_bound(i);
		cr_assert(high > low, "bound %u", i);
		if (low >= 8)
			cr_assert(high - low <= low / 8 + 1, "bound %u", i);
		powers += (low & (low - 1)) == 0;
	}
	expect_eq(powers, 64); /* 2^0 .. 2^63 */
	expect_eq(tw__histogram_bound(TW_HISTOGRAM_BUCKETS - 1), UINT64_MAX);
	expect_eq(tw__histogram_bound(TW_HISTOGRAM_BUCKETS), UINT64_MAX);
	expect_eq(tw__histogram_bound(UINT32_MAX), UINT64_MAX);
}

/* Other processes, and what they have stored, count by these bounds: they must not move. */
Test(service_histograms, bounds_are_those_of_every_version)
{
	static const struct {
		unsigned bucket;
		uint64_t bound;
	} known[] = {{7, 8},
		     {8, 9},
		     {15, 16},
		     {16, 18},
		     {63, 1024},
		     {64, 1152},
		     {143, 1048576},
		     {144, 1179648},
		     {151, 2097152},
		     {223, 1073741824},
		     {302, 1030792151040},
		     {303, 1099511627776},
		     {494, UINT64_C(17293822569102704640)}};
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		expect_eq(tw__histogram_bound(known[i].bucket), known[i].bound);
}

Test(service_histograms, a_duration_at_a_bound_belongs_to_the_bucket_below_it)
{
	struct probe probe = PROBE(&rig, 1);
	be_late(&probe, 1 << 20);
	be_late(&probe, (1 << 20) + 1);
	struct tw_histogram lateness = read_of(rig.service).lateness;
	expect_eq(lateness.count, 2);
	expect_eq(lateness.sum_ns, (2 << 20) + 1);
	expect_eq(lateness.max_ns, (1 << 20) + 1);
	expect_eq(lateness.buckets[143], 1);
	expect_eq(lateness.buckets[144], 1);
	expect_eq(tw__histogram_count_upto(&lateness, (1 << 20) - 1), 0);
	expect_eq(tw__histogram_count_upto(&lateness, 1 << 20), 1);
	expect_eq(tw__histogram_count_upto(&lateness, (1 << 20) + 1), 1);
	expect_eq(tw__histogram_count_upto(&lateness, UINT64_MAX), 2);
}

/* -------------------------------------------------------------- percentiles */

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

/* Against a sorted list of the same durations. */
static void expect_percentiles(const struct tw_histogram *histogram, uint64_t *durations, size_t n)
{
	qsort(durations, n, sizeof *durations, compare);
	for (unsigned percent = 0; percent <= 100; percent++) {
		size_t rank = (percent * n + 99) / 100;
		uint64_t exact = durations[rank ? rank - 1 : 0];
		uint64_t answer = tw_histogram_percentile(histogram, percent / 100.0);
		cr_assert(answer >= exact && answer <= exact + exact / 8 + 1,
			  "percentile %u: %lu, exactly %lu", percent, (unsigned long)answer,
			  (unsigned long)exact);
	}
}

static uint64_t draw_lateness(uint64_t *random)
{
	return random_below(random, (UINT64_C(1) << random_below(random, 34)) + 1);
}

Test(service_histograms, percentiles_are_those_of_a_sorted_list_or_an_eighth_above)
{
	enum { N = 2000 };
	static uint64_t durations[N];
	uint64_t random = 20261123;
	uint64_t sum_ns = 0;
	struct probe probe = PROBE(&rig, 1);
	for (int i = 0; i < N; i++) {
		durations[i] = draw_lateness(&random);
		sum_ns += durations[i];
		be_late(&probe, durations[i]);
	}
	struct tw_histogram lateness = read_of(rig.service).lateness;
	expect_eq(lateness.count, N);
	expect_eq(lateness.sum_ns, sum_ns);
	expect_percentiles(&lateness, durations, N);
	expect_eq(tw_histogram_percentile(&lateness, -1), tw_histogram_percentile(&lateness, 0));
	expect_eq(tw_histogram_percentile(&lateness, NAN), tw_histogram_percentile(&lateness, 0));
	expect_eq(tw_histogram_percentile(&lateness, 2), lateness.max_ns);
}

Test(service_histograms, an_empty_one_has_no_percentiles)
{
	struct tw_histogram empty = {0};
	expect_eq(tw_histogram_percentile(&empty, 0.5), 0);
	expect_eq(tw_histogram_percentile(&empty, 1), 0);
	expect_eq(tw_histogram_percentile(NULL, 0.5), 0);
}
