#include "mpsc/base/histogram.h"

#include <errno.h>

#include "mpsc/base/misuse.h"

/* ------------------------------------------------------------------ buckets */

uint64_t tw__histogram_bound(unsigned bucket)
{
	if (bucket < 8)
		return bucket + 1;
	if (bucket >= TW_HISTOGRAM_BUCKETS - 1)
		return UINT64_MAX;
	unsigned octave = bucket / 8 + 2;
	return (UINT64_C(1) << octave) + (bucket % 8 + UINT64_C(1)) * (UINT64_C(1) << (octave - 3));
}

/* ------------------------------------------------------------------- public */

/* Ranks are counted from 1; 0 is the first, too. */
static uint64_t at_rank(const struct tw_histogram *histogram, uint64_t rank)
{
	uint64_t seen = 0;
	for (unsigned i = 0; i < TW_HISTOGRAM_BUCKETS; i++) {
		seen += histogram->buckets[i];
		if (seen >= rank && seen)
			return tw__histogram_bound(i) < histogram->max_ns ? tw__histogram_bound(i)
									  : histogram->max_ns;
	}
	return 0;
}

uint64_t tw_histogram_percentile(const struct tw_histogram *histogram, double share)
{
	if (!histogram || !histogram->count)
		return 0;
	/* a NaN is the least, too */
	double exact = share > 0 ? (share < 1 ? share : 1) * (double)histogram->count : 0;
	uint64_t rank = exact < (double)histogram->count ? (uint64_t)exact : histogram->count;
	rank += (double)rank < exact;
	return at_rank(histogram, rank < histogram->count ? rank : histogram->count);
}

/* ----------------------------------------------------------------- internal */

void tw__histogram_collect(struct tw_histogram *sum, const struct tw__histogram *histogram)
{
	for (unsigned i = 0; i < TW_HISTOGRAM_BUCKETS; i++) {
		uint64_t count = tw_load_relaxed(&histogram->buckets[i]);
		sum->buckets[i] += count;
		sum->count += count;
	}
	sum->sum_ns += tw_load_relaxed(&histogram->sum_ns);
	uint64_t max_ns = tw_load_relaxed(&histogram->max_ns);
	sum->max_ns = sum->max_ns > max_ns ? sum->max_ns : max_ns;
}

uint64_t tw__histogram_count_upto(const struct tw_histogram *histogram, uint64_t ns)
{
	uint64_t count = 0;
	for (unsigned i = 0; i < TW_HISTOGRAM_BUCKETS && tw__histogram_bound(i) <= ns; i++)
		count += histogram->buckets[i];
	return count;
}

struct tw_latency tw__histogram_latency(const struct tw_histogram *histogram)
{
	return (struct tw_latency){.count = histogram->count,
				   .p50_ns = tw_histogram_percentile(histogram, 0.5),
				   .p99_ns = tw_histogram_percentile(histogram, 0.99),
				   .p999_ns = tw_histogram_percentile(histogram, 0.999),
				   .max_ns = histogram->max_ns};
}

struct tw_latency tw__histogram_read(const struct tw__histogram *histogram)
{
	struct tw_histogram copy = {0};
	tw__histogram_collect(&copy, histogram);
	return tw__histogram_latency(&copy);
}
