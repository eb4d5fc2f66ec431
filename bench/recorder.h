/*
 * What callbacks write down: every run counted, its lateness in a histogram, early ones apart. One
 * recorder per thread that runs callbacks, so that recording costs no shared cache line and weighs
 * the same on every candidate.
 */
#ifndef BENCH_RECORDER_H
#define BENCH_RECORDER_H

#include <stdatomic.h>
#include <stdint.h>

/* Log-linear: 16 buckets for each doubling, so a percentile is at most 1/16 too high. */
enum { LATENESS_BUCKETS = 61 * 16 };

struct lateness {
	uint64_t count;
	uint64_t max_ns;
	uint64_t buckets[LATENESS_BUCKETS];
};

static inline unsigned lateness_bucket(uint64_t ns)
{
	if (ns < 16)
		return (unsigned)ns;
	unsigned exponent = 63 - (unsigned)__builtin_clzll(ns);
	return (exponent - 3) * 16 + (unsigned)((ns >> (exponent - 4)) & 15);
}

static inline void lateness_add(struct lateness *lateness, uint64_t ns)
{
	lateness->count++;
	lateness->buckets[lateness_bucket(ns)]++;
	if (ns > lateness->max_ns)
		lateness->max_ns = ns;
}

/*
 * The upper bound of the bucket that holds the given share (0 .. 1) of all; never above the
 * maximum.
 */
uint64_t lateness_percentile_ns(const struct lateness *lateness, double share);

struct recorder {
	struct recorder *next;
	_Atomic uint64_t fired; /* written last, with release: who reads it sees the rest */
	uint64_t early;
	uint64_t wrong; /* ran though cancelled, or a second time */
	uint64_t sum;   /* what a workload adds up over all runs, to know which they were */
	struct lateness lateness;
};

extern _Thread_local struct recorder *recorder_of_thread;
struct recorder *recorder_begin(void);

static inline struct recorder *recorder_mine(void)
{
	return recorder_of_thread ? recorder_of_thread : recorder_begin();
}

/* A run, due at deadline_ns, that began at at_ns. */
static inline void recorder_note(struct recorder *recorder, uint64_t deadline_ns, uint64_t at_ns)
{
	if (at_ns < deadline_ns)
		recorder->early++;
	else
		lateness_add(&recorder->lateness, at_ns - deadline_ns);
	uint64_t fired = atomic_load_explicit(&recorder->fired, memory_order_relaxed);
	atomic_store_explicit(&recorder->fired, fired + 1, memory_order_release);
}

/* An expiry_fn whose arg is the deadline in nanoseconds itself, or a lower bound of it. */
void record_deadline(void *deadline_ns);

uint64_t recorded_fired(void);

/* All threads' together. Exact once recorded_fired() has shown the last run. */
struct records {
	uint64_t fired, early, wrong, sum;
	struct lateness lateness;
};
void recorded(struct records *out);

#endif
