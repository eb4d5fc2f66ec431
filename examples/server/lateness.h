/*
 * How late something was: a histogram that one thread writes and any thread may read.
 *
 * It has eight buckets an octave: a percentile is an upper bound, at most 1/8 too high. The maximum
 * is exact. Several writers would lose counts: keep a histogram for each thread, or a lock, and
 * merge when a report is made.
 */
#ifndef EXAMPLES_SERVER_LATENESS_H
#define EXAMPLES_SERVER_LATENESS_H

#include <stdatomic.h>
#include <stdint.h>

#define LATENESS_BUCKETS 496

struct lateness {
	_Atomic uint64_t count;
	_Atomic uint64_t early; /* ran before they were due: must stay 0 */
	_Atomic uint64_t max_ns;
	_Atomic uint64_t buckets[LATENESS_BUCKETS];
};

/* For counters with one writer: cheaper than a locked addition, and never torn for readers. */
static inline void count_up(_Atomic uint64_t *counter, uint64_t by)
{
	uint64_t old = atomic_load_explicit(counter, memory_order_relaxed);
	atomic_store_explicit(counter, old + by, memory_order_relaxed);
}

static inline uint64_t count_of(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

void lateness_record(struct lateness *l, uint64_t due_ns, uint64_t ran_ns);
void lateness_merge(struct lateness *into, const struct lateness *from);
uint64_t lateness_percentile_ns(const struct lateness *l, unsigned percent);

#endif
