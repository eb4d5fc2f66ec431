/*
 * Log-linear buckets: below 16 ns exact, above that the top bit and the three bits after it choose
 * the bucket.
 */
#include "examples/server/lateness.h"

static unsigned bucket_of(uint64_t ns)
{
	if (ns < 16)
		return (unsigned)ns;
	unsigned top = 63u - (unsigned)__builtin_clzll(ns);
	return (top - 2) * 8 + (unsigned)((ns >> (top - 3)) & 7);
}

static uint64_t upper_end_ns(unsigned bucket)
{
	if (bucket < 16)
		return bucket;
	unsigned top = bucket / 8 + 2;
	return (((uint64_t)(bucket % 8) + 9) << (top - 3)) - 1;
}

void lateness_record(struct lateness *l, uint64_t due_ns, uint64_t ran_ns)
{
	uint64_t late_ns = ran_ns > due_ns ? ran_ns - due_ns : 0;
	count_up(&l->count, 1);
	count_up(&l->buckets[bucket_of(late_ns)], 1);
	if (ran_ns < due_ns)
		count_up(&l->early, 1);
	if (late_ns > count_of(&l->max_ns))
		atomic_store_explicit(&l->max_ns, late_ns, memory_order_relaxed);
}

void lateness_merge(struct lateness *into, const struct lateness *from)
{
	count_up(&into->count, count_of(&from->count));
	count_up(&into->early, count_of(&from->early));
	if (count_of(&from->max_ns) > count_of(&into->max_ns))
		atomic_store_explicit(&into->max_ns, count_of(&from->max_ns), memory_order_relaxed);
	for (unsigned i = 0; i < LATENESS_BUCKETS; i++)
		count_up(&into->buckets[i], count_of(&from->buckets[i]));
}

uint64_t lateness_percentile_ns(const struct lateness *l, unsigned percent)
{
	uint64_t wanted = (count_of(&l->count) * percent + 99) / 100, seen = 0;
	for (unsigned i = 0; i < LATENESS_BUCKETS; i++) {
		seen += count_of(&l->buckets[i]);
		if (seen >= wanted && seen > 0)
			return upper_end_ns(i) < count_of(&l->max_ns) ? upper_end_ns(i)
								      : count_of(&l->max_ns);
	}
	return count_of(&l->max_ns);
}
