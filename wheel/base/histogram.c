#include "wheel/base/histogram.h"

static unsigned cell_of(uint64_t ns)
{
	if (ns < 8)
		return (unsigned)ns;
	unsigned octave = 63 - (unsigned)__builtin_clzll(ns);
	return (octave - 2) * 8 + (unsigned)(ns >> (octave - 3) & 7);
}

/* The largest value that falls into a cell. */
static uint64_t cell_end(unsigned cell)
{
	if (cell < 8)
		return cell;
	unsigned octave = cell / 8 + 2;
	uint64_t width = UINT64_C(1) << (octave - 3);
	return (UINT64_C(1) << octave) + (cell % 8) * width + (width - 1);
}

void tw__histogram_add(struct tw__histogram *histogram, uint64_t ns, uint64_t times)
{
	tw_bump(&histogram->cells[cell_of(ns)], times);
	if (ns > tw_load_relaxed(&histogram->max_ns))
		tw_store_relaxed(&histogram->max_ns, ns);
}

void tw__histogram_merge(struct tw__histogram *sum, const struct tw__histogram *histogram)
{
	for (unsigned i = 0; i < TW__HISTOGRAM_CELLS; i++)
		tw_bump(&sum->cells[i], tw_load_relaxed(&histogram->cells[i]));
	uint64_t max_ns = tw_load_relaxed(&histogram->max_ns);
	if (max_ns > tw_load_relaxed(&sum->max_ns))
		tw_store_relaxed(&sum->max_ns, max_ns);
}

static uint64_t quantile(const struct tw__histogram *histogram, uint64_t rank, uint64_t max_ns)
{
	uint64_t seen = 0;
	for (unsigned i = 0; i < TW__HISTOGRAM_CELLS; i++) {
		seen += tw_load_relaxed(&histogram->cells[i]);
		if (seen >= rank)
			return cell_end(i) < max_ns ? cell_end(i) : max_ns;
	}
	return max_ns;
}

struct tw_latency tw__histogram_read(const struct tw__histogram *histogram)
{
	struct tw_latency latency = {.max_ns = tw_load_relaxed(&histogram->max_ns)};
	for (unsigned i = 0; i < TW__HISTOGRAM_CELLS; i++)
		latency.count += tw_load_relaxed(&histogram->cells[i]);
	if (latency.count) {
		uint64_t n = latency.count;
		latency.p50_ns = quantile(histogram, n - n / 2, latency.max_ns);
		latency.p99_ns = quantile(histogram, n - n / 100, latency.max_ns);
		latency.p999_ns = quantile(histogram, n - n / 1000, latency.max_ns);
	}
	return latency;
}
