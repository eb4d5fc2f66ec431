/* The list of recorders only grows: a thread's counts outlive it. */
#include <stdlib.h>
#include <string.h>

#include "bench/measure.h"
#include "bench/recorder.h"

_Thread_local struct recorder *recorder_of_thread;
static struct recorder *_Atomic all_recorders;

struct recorder *recorder_begin(void)
{
	struct recorder *mine = calloc(1, sizeof *mine);
	if (!mine)
		abort();
	mine->next = atomic_load(&all_recorders);
	while (!atomic_compare_exchange_weak(&all_recorders, &mine->next, mine))
		;
	return recorder_of_thread = mine;
}

void record_deadline(void *deadline_ns)
{
	recorder_note(recorder_mine(), (uint64_t)(uintptr_t)deadline_ns, now_ns());
}

uint64_t recorded_fired(void)
{
	uint64_t fired = 0;
	for (struct recorder *r = atomic_load(&all_recorders); r; r = r->next)
		fired += atomic_load_explicit(&r->fired, memory_order_acquire);
	return fired;
}

static void merge(struct lateness *into, const struct lateness *from)
{
	into->count += from->count;
	if (from->max_ns > into->max_ns)
		into->max_ns = from->max_ns;
	for (unsigned i = 0; i < LATENESS_BUCKETS; i++)
		into->buckets[i] += from->buckets[i];
}

void recorded(struct records *out)
{
	memset(out, 0, sizeof *out);
	for (struct recorder *r = atomic_load(&all_recorders); r; r = r->next) {
		out->fired += atomic_load_explicit(&r->fired, memory_order_acquire);
		out->early += r->early;
		out->wrong += r->wrong;
		out->sum += r->sum;
		merge(&out->lateness, &r->lateness);
	}
}

static uint64_t bucket_end_ns(unsigned bucket)
{
	if (bucket < 16)
		return bucket;
	unsigned exponent = bucket / 16 + 3;
	return ((UINT64_C(16) + bucket % 16 + 1) << (exponent - 4)) - 1;
}

uint64_t lateness_percentile_ns(const struct lateness *lateness, double share)
{
	uint64_t wanted = (uint64_t)((double)lateness->count * share), seen = 0;
	for (unsigned i = 0; i < LATENESS_BUCKETS; i++) {
		seen += lateness->buckets[i];
		if (seen > wanted)
			return bucket_end_ns(i) < lateness->max_ns ? bucket_end_ns(i)
								   : lateness->max_ns;
	}
	return lateness->max_ns;
}
