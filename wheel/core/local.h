/* A thread's part of a service: its lane, its stock of slots, its counters. */
#ifndef TW_WHEEL_LOCAL_H
#define TW_WHEEL_LOCAL_H

#include "wheel/core/service.h"
#include "mpsc/base/histogram.h"

enum { TW__LATENCY_WAIT, TW__LATENCY_RUN, TW__LATENCIES };

/* One thread's part of a service; survives the thread, and goes to the next one. */
struct tw__local {
	struct tw__lane lane; /* first: the queue knows it by this */

	/* Its thread's alone. */
	struct tw__magazine magazine;
	/* the base its lane carries is that of this word of the gate, which was open; or 0 */
	uint64_t epoch_word;
	/* while the gate says this, a delay may go the short way (timer/schedule.c) */
	uint64_t short_word;
	/* then this and the delay make a span whose ticks, rounded down, are the deadline */
	uint64_t short_base_ns;
	/*
	 * What it last counted from, except for a reading of the clock beside epochs; later bases
	 * are not earlier (G6).
	 */
	uint64_t counted_ns;

	/*
	 * Written by its thread, read by a driver that is called: entries up to here may be
	 * due immediately (loop_fd.c).
	 */
	_Atomic uint64_t urgent;

	/* Written by its thread, read by statistics. */
	_Atomic uint64_t fired, dropped; /* scheduled and cancelled: see magazine */
	_Atomic uint64_t rejected, runs, overruns, resets, resets_eager;
	/* [TW__LATENCIES]; made when the thread first runs a callback */
	_Atomic(struct tw__histogram *) latencies;

	_Atomic uint32_t
	    /* a thread of the service's own: no producer (sweep.c); cleared when the thread ends */
	    of_service;

	/* The driver's alone. */
	/* delays in this lane count from here; never falls (G6) */
	alignas(TW__CACHE_LINE) uint64_t base_ns;
	/* what the thread itself counted from: base_ns is not earlier; 0: unknown */
	uint64_t estimate_ns;
	/* the epoch that the lane carries at this point, or 0: base_ns is exact */
	uint64_t base_sequence;
};

static inline struct tw__local *tw__local_of(tw_service *service)
{
	return (struct tw__local *)tw__queue_lane(&service->queue);
}

/* The same if it is the one that this thread used last; else NULL, and always in a forked child. */
static inline struct tw__local *tw__local_at_hand(const tw_service *service)
{
	const struct tw__thread *thread = &tw__thread;
	if (tw_unlikely(thread->queue_id != service->gate.queue_id))
		return NULL;
	struct tw__lane *lane = thread->lane;
	if (!lane)
		__builtin_unreachable(); /* a thread without a lane has an id that no queue has */
	return (struct tw__local *)lane;
}

/*
 * Makes what was put into the lane visible. Followed by a look at the gate
 * (tw__gate_look_after_push). By tw__publish_later: nothing of it is due before the next tick.
 */
static inline void tw__publish_later(tw_service *service, struct tw__local *local)
{
	if (tw_likely(service->gate.asymmetric))
		tw__lane_publish(&local->lane);
	else
		tw__lane_publish_seq_cst(&local->lane);
}

static inline void tw__publish(tw_service *service, struct tw__local *local)
{
	/* published with the tail (lane.h, LANE1) */
	tw_store_relaxed(&local->urgent, tw__lane_written(&local->lane));
	tw__publish_later(service, local);
}

#endif
