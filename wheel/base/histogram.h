/*
 * Distributions of durations: log-linear counters, eight to each power of two, so that a percentile is at most 1/8 too high.
 * One thread adds, any thread reads.
 */
#ifndef TW_WHEEL_HISTOGRAM_H
#define TW_WHEEL_HISTOGRAM_H

#include "mpsc/base/atomics.h"
#include "tickwheel/stats.h"

enum { TW__HISTOGRAM_CELLS = 62 * 8 };

struct tw__histogram {
	_Atomic uint64_t cells[TW__HISTOGRAM_CELLS];
	_Atomic uint64_t max_ns;
};

void tw__histogram_add(struct tw__histogram *histogram, uint64_t ns, uint64_t times);

/* Sums, for reading: sum += histogram. */
void tw__histogram_merge(struct tw__histogram *sum, const struct tw__histogram *histogram);

struct tw_latency tw__histogram_read(const struct tw__histogram *histogram);

#endif
