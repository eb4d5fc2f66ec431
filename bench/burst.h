/*
 * W11 and W12 share these callbacks, which only count their runs, and the wait for n runs. The
 * candidate's `threads` are its workers. The bench's own thread submits the work.
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
 * Waits until `fired` callbacks have run since the process began. If a candidate loses one, the
 * bench stops it at the run's time limit.
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
