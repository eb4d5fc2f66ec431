/*
 * The gate: what the driver publishes for producers, and how they wake it.
 *
 * One word, written by the driver alone and read by each push, says whether the driver is alive, whether its published time
 * may be used, whether it sleeps, and whether it accepts what is new; its upper bits are a sequence number of that time. While the
 * driver ticks (OPEN) a push does nothing but look. While it sleeps (PARKED) a push rings if what it brought is needed
 * earlier than the driver plans to wake: a comparison of opaque keys, smaller is earlier.
 *
 * Sleep and wake (a Dekker pair: store own side, barrier, load the other's):
 *     push:   tail = ...; barrier; word = gate.word; if (word says PARKED and key < plan) ring
 *     park:   plan = ...; word = PARKED; heavy barrier; if (any lane unread) do not sleep
 * With membarrier the push's barrier is for the compiler only, and park pays. Where the kernel has none, both sides use
 * sequentially consistent operations instead. Either way no push can be missed by park while its own look misses PARKED.
 * Closing is the same pair with the end of ACCEPTING in PARKED's place.
 *
 * Should membarrier be refused later than at creation, park sleeps no longer than a tick: a push that it missed is met then, for a
 * store does reach the other cores in time. Close cannot rest on "in time": it waits until each producer has looked at a word that
 * does not accept, which it acknowledges, or has ended (close.c).
 *
 * The gate lies in memory that is zero in a forked child (fork.h): there the word is 0, which no word ever is where it was made,
 * and does not accept; so whoever looks anyway learns of the fork for nothing. Alone on its page: nothing else may be wiped.
 *
 * Pairing table
 *   P1  word: exchange-seq_cst (publish) -> load-acquire (look): plan, and all the driver published before.
 *   P2  lane.tail -> barrier -> word (producer) against word -> heavy barrier -> lane.tail (driver): the Dekker pair
 *       above. Without it a timer pushed in the moment of falling asleep waits for someone else's wake-up.
 *   P3  bell: exchange-seq_cst (ring) against exchange-seq_cst to 0 (arm the bell), which comes before the driver looks at
 *       lanes and requests: a ring after that look is seen by the futex itself.
 *   cursor, base_ns: relaxed loads of what only grows. A stale cursor makes a deadline FAR too soon, a stale or too new base
 *       is a guess that the driver corrects; a claim needs a cursor no older than its batch, which the batch brings (run.h, R1).
 */
#ifndef TW_MPSC_GATE_H
#define TW_MPSC_GATE_H

#include <stdalign.h>

#include "mpsc/futex.h"

enum {
	TW__GATE_LIVE = 1,      /* always: the word is not 0 */
	TW__GATE_OPEN = 2,      /* the driver ticks: the sequence number stands for "about now" */
	TW__GATE_PARKED = 4,    /* the driver sleeps until plan */
	TW__GATE_ACCEPTING = 8, /* until close */
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

/* Before or in place of a push: closed, or forked. */
static inline bool tw__gate_refuses(uint64_t word)
{
	return !(word & TW__GATE_ACCEPTING);
}

/* In a child of the process that made the gate. Relaxed: the answer never changes while a process lives. */
static inline bool tw__gate_forked(const struct tw__gate *gate)
{
	return tw_load_relaxed(&gate->word) == 0;
}

static inline bool tw__gate_is_open(uint64_t word)
{
	return (word & (TW__GATE_OPEN | TW__GATE_ACCEPTING)) == (TW__GATE_OPEN | TW__GATE_ACCEPTING);
}

static inline uint64_t tw__gate_sequence(uint64_t word)
{
	return word >> TW__GATE_SEQUENCE_SHIFT;
}

/* Driver only: a new word, with the next sequence number. */
uint64_t tw__gate_publish(struct tw__gate *gate, uint64_t flags);

/*
 * After publishing PARKED or the end of ACCEPTING and before looking at the lanes: from here each push that this driver will
 * not see, sees the new word. False: nothing can be concluded, do not sleep longer than a tick. Any thread that has seen the word.
 */
bool tw__gate_barrier(struct tw__gate *gate);

/* Driver only: forgets earlier rings. Comes before the last look at what a ring may announce (P3). */
void tw__gate_arm_bell(struct tw__gate *gate);

/* Driver only: sleeps until rung or CLOCK_MONOTONIC reaches the deadline (UINT64_MAX: none). */
void tw__gate_sleep(struct tw__gate *gate, uint64_t deadline_ns);

/* Wakes the driver. Any thread; a system call only for the first ring of a sleep. */
void tw__gate_ring(struct tw__gate *gate);

#endif
