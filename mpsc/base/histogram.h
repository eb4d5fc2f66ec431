/*
 * Distributions of durations: eight counters to each power of two, so that a percentile is at most
 * 1/8 too high. One thread adds, any thread reads.
 */
#ifndef TW_MPSC_HISTOGRAM_H
#define TW_MPSC_HISTOGRAM_H

#include "mpsc/base/atomics.h"
#include "tickwheel/stats.h"

struct tw__histogram {
	_Atomic uint64_t buckets[TW_HISTOGRAM_BUCKETS];
	_Atomic uint64_t sum_ns, max_ns;
};

/* The longest duration of a bucket; UINT64_MAX: the last one. */
uint64_t tw__histogram_bound(unsigned bucket);

/* A power of two is the upper bound of a bucket. */
static inline unsigned tw__histogram_bucket(uint64_t ns)
{
	uint64_t below = ns ? ns - 1 : 0;
	if (below < 8)
		return (unsigned)below;
	unsigned octave = 63 - (unsigned)__builtin_clzll(below);
	return (octave - 2) * 8 + (unsigned)(below >> (octave - 3) & 7);
}

static inline void tw__histogram_add(struct tw__histogram *histogram, uint64_t ns, uint64_t times)
{
	tw_bump(&histogram->buckets[tw__histogram_bucket(ns)], times);
	tw_bump(&histogram->sum_ns, ns * times);
	if (ns > tw_load_relaxed(&histogram->max_ns))
		tw_store_relaxed(&histogram->max_ns, ns);
}

/* Adds a histogram to *sum. Any thread. */
void tw__histogram_collect(struct tw_histogram *sum, const struct tw__histogram *histogram);

/* How many were at most ns; if that is no bound, up to the next lower one. */
uint64_t tw__histogram_count_upto(const struct tw_histogram *histogram, uint64_t ns);

struct tw_latency tw__histogram_latency(const struct tw_histogram *histogram);

struct tw_latency tw__histogram_read(const struct tw__histogram *histogram);

#endif
