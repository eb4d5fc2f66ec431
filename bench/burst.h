/*
 * What W11 and W12 share: callbacks that only count, per thread, and waiting until so many have
 * run. The candidate's `threads` are its workers here; one thread, the bench's own, brings the
 * work.
 */
#ifndef BENCH_BURST_H
#define BENCH_BURST_H

#include <sched.h>
#include <stdatomic.h>

#include "bench/measure.h"
#include "bench/recorder.h"
#include "bench/workload.h"

/* An expiry_fn that does nothing but count. */
static inline void burst_count(void *arg)
{
	struct recorder *mine = recorder_mine();
	(void)arg;
	uint64_t fired = atomic_load_explicit(&mine->fired, memory_order_relaxed);
	atomic_store_explicit(&mine->fired, fired + 1, memory_order_release);
}

/*
 * Until so many have run since the process began; a candidate that loses one hangs, and is told by
 * the run's limit.
 */
static inline void burst_await(uint64_t fired)
{
	while (recorded_fired() < fired)
		sched_yield();
}

/* One, however often the candidate is full. */
static inline void burst_post(const struct order *order, void *self, expiry_fn *fn, void *arg)
{
	while (order->candidate->post(self, fn, arg) != 0)
		sched_yield();
}

#endif
