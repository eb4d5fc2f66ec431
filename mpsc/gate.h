/*
 * The gate: what the driver publishes for producers, and how they wake it.
 *
 * One word, written by the driver alone and read by each push, says whether the driver is alive, whether its published time
 * may be used, whether it sleeps, and whether it is closed; its upper bits are a sequence number of that time. While the
 * driver ticks (OPEN) a push does nothing but look. While it sleeps (PARKED) a push rings if what it brought is needed
 * earlier than the driver plans to wake: a comparison of opaque keys, smaller is earlier.
 *
 * Sleep and wake (a Dekker pair: store own side, barrier, load the other's):
 *     push:   tail = ...; barrier; word = gate.word; if (word says PARKED and key < plan) ring
 *     park:   plan = ...; word = PARKED; heavy barrier; if (any lane unread) do not sleep
 * With membarrier the push's barrier is for the compiler only, and park pays. Where the kernel has none, both sides use
 * sequentially consistent operations instead. Either way no push can be missed by park while its own look misses PARKED.
 * Closing is the same pair with CLOSED in PARKED's place.
 *
 * Pairing table
 *   P1  word: exchange-seq_cst (publish) -> load-acquire (look): plan, and all the driver published before.
 *   P2  lane.tail -> barrier -> word (producer) against word -> heavy barrier -> lane.tail (driver): the Dekker pair
 *       above. Without it a timer pushed in the moment of falling asleep waits for someone else's wake-up.
 *   P3  bell: exchange-seq_cst (ring) against exchange-seq_cst to 0 (arm the bell), which comes before the driver looks at
 *       lanes and requests: a ring after that look is seen by the futex itself.
 *   P4  lane.pinned -> barrier -> word (a call that must be taken as a whole or not at all) against word -> heavy barrier ->
 *       lane.pinned (whoever closes): the Dekker pair with CLOSED in PARKED's place and the pin in the tail's. A call that saw the gate
 *       open is seen pinned, and waited for by the closer (never by the driver): all that it publishes comes before its pin falls
 *       (store-release -> the closer's load). Without it close may end a part of a batch that the rest of is then refused.
 *   cursor, base_ns: relaxed loads of what only grows. A stale cursor makes a deadline FAR too soon, a stale or too new base
 *       is a guess that the driver corrects; a claim needs a cursor no older than its batch, which the batch brings (run.h, R1).
 */
#ifndef TW_MPSC_GATE_H
#define TW_MPSC_GATE_H

#include <stdalign.h>

#include "mpsc/futex.h"

enum {
	TW__GATE_LIVE = 1,   /* always; a page of zeroes is none of ours */
	TW__GATE_OPEN = 2,   /* the driver ticks: the sequence number stands for "about now" */
	TW__GATE_PARKED = 4, /* the driver sleeps until plan */
	TW__GATE_CLOSED = 8, /* nothing new is accepted */
	TW__GATE_FLAGS = 15,
	TW__GATE_SEQUENCE_SHIFT = 4
};

struct tw__gate {
	alignas(TW__CACHE_LINE) _Atomic uint64_t word;
	_Atomic uint64_t plan;    /* key for which the sleeping driver will wake by itself; UINT64_MAX: for none */
	_Atomic uint64_t cursor;  /* for the layer above: the last tick turned through */
	_Atomic uint64_t base_ns; /* likewise: what pushes of this sequence number may count from */
	bool asymmetric;          /* membarrier works; decided at creation */

	alignas(TW__CACHE_LINE) _Atomic uint32_t bell; /* 1: rung */
};

/* Before any thread knows of it. */
void tw__gate_init(struct tw__gate *gate);

static inline uint64_t tw__gate_look(const struct tw__gate *gate)
{
	return tw_load_acquire(&gate->word); /* P1: pairs with publish */
}

/* The look after a push, which P2 speaks of. */
static inline uint64_t tw__gate_look_after_push(struct tw__gate *gate)
{
	if (tw_likely(gate->asymmetric)) {
		tw_compiler_barrier();
		return tw_load_acquire(&gate->word); /* P1, P2 */
	}
	return tw_load_seq_cst(&gate->word); /* P2: the push was published by tw__lane_publish_seq_cst */
}

/* Pins a lane, then looks (P4): if that does not say closed, close will wait until the pin is taken off. */
static inline uint64_t tw__gate_pin_and_look(struct tw__gate *gate, _Atomic uint32_t *pinned)
{
	if (tw_likely(gate->asymmetric)) {
		tw_store_relaxed(pinned, 1); /* P4: ordered by the driver's heavy barrier */
		return tw__gate_look_after_push(gate);
	}
	tw_store_seq_cst(pinned, 1); /* P4 */
	return tw_load_seq_cst(&gate->word);
}

static inline void tw__gate_unpin(_Atomic uint32_t *pinned)
{
	tw_store_release(pinned, 0); /* P4: pairs with is_pinned */
}

/* For the closer, after the driver has published CLOSED and passed its barrier. */
static inline bool tw__gate_is_pinned(const _Atomic uint32_t *pinned)
{
	return tw_load_seq_cst(pinned) != 0; /* P4 */
}

static inline bool tw__gate_is_open(uint64_t word)
{
	return (word & (TW__GATE_LIVE | TW__GATE_OPEN | TW__GATE_CLOSED)) == (TW__GATE_LIVE | TW__GATE_OPEN);
}

static inline uint64_t tw__gate_sequence(uint64_t word)
{
	return word >> TW__GATE_SEQUENCE_SHIFT;
}

/* Driver only: a new word, with the next sequence number. */
uint64_t tw__gate_publish(struct tw__gate *gate, uint64_t flags);

/*
 * Driver only, after publishing PARKED or CLOSED and before looking at the lanes: from here each push that this driver will
 * not see, sees the new word. False: nothing can be concluded, do not sleep longer than a tick.
 */
bool tw__gate_barrier(struct tw__gate *gate);

/* Driver only: forgets earlier rings. Comes before the last look at what a ring may announce (P3). */
void tw__gate_arm_bell(struct tw__gate *gate);

/* Driver only: sleeps until rung or CLOCK_MONOTONIC reaches the deadline (UINT64_MAX: none). */
void tw__gate_sleep(struct tw__gate *gate, uint64_t deadline_ns);

/* Wakes the driver. Any thread; a system call only for the first ring of a sleep. */
void tw__gate_ring(struct tw__gate *gate);

#endif
