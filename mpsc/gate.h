/*
 * The gate: what the driver publishes for producers, and how they wake it.
 *
 * One word, written by the driver alone and read by each push, says whether the driver is alive,
 * whether its published time may be used, whether it sleeps, and whether it accepts what is new;
 * its upper bits are a sequence number of that time. While the driver ticks (OPEN) a push does
 * nothing but look. While it sleeps (PARKED) a push rings if what it brought is needed earlier than
 * the driver plans to wake: a comparison of opaque keys, smaller is earlier.
 *
 * Sleep and wake (a Dekker pair: store own side, barrier, load the other's):
 *     push:   tail = ...; barrier; word = gate.word; if (word says PARKED and key < plan) ring
 *     park:   plan = ...; word = PARKED; heavy barrier; if (any lane unread) do not sleep
 * With membarrier (the idea is userspace-rcu's) the push's barrier is for the compiler only, and
 * park pays. Where the kernel has none, both sides use sequentially consistent operations instead.
 * Either way no push can be missed by park while its own look misses PARKED. Closing is the same
 * pair with the end of ACCEPTING in PARKED's place.
 *
 * If membarrier is refused later than at creation, park sleeps no longer than a tick: a push that
 * it missed is met then, for a store does reach the other cores in time. Close cannot rest on "in
 * time": it answers -ENOTSUP (close.c).
 *
 * Pairing table
 *   GATE1  word: exchange-seq_cst (publish) -> load-acquire (look): plan, and all the driver
 *       published before.
 *   GATE2  lane.tail -> barrier -> word (producer) against word -> heavy barrier -> lane.tail
 *       (driver): the Dekker pair above. Without it a timer pushed in the moment of falling asleep
 *       waits for someone else's wake-up. A young lane (wheel/core/local.h) may stay unread
 *       meanwhile: the driver plans by its soonest, and looks at that again after the barrier. What
 *       it sees there is not above the key of any push that it would have seen (LANE10), and the
 *       others ring.
 *   GATE3  bell: or-seq_cst (ring) against exchange-seq_cst (arm the bell), which comes before the
 *       driver looks at lanes and requests: a ring before it is followed by that look, which sees
 *       what was rung for; a ring after it finds the bell quiet and is seen by the futex itself, or
 *       stays in the descriptor. Which of the two it must wake is in the bell's own value, so
 *       that the driver knows how many writes to the descriptor are still under way (bell_owed):
 *       one that comes late is read later. A read may take the write of a ring that came after the
 *       exchange, so another exchange follows on it: a bell that is rung with nothing to read would
 *       let the driver sleep, and the next thread that rings leaves the writing to others. A
 *       write that comes after that wakes for nothing.
 *   GATE4  plan, in a loop of the user's own: such a driver is PARKED all the time, from its
 *       first tw_service_fd to close, also while it turns (what it turns through is not later than
 *       its plan, so nobody rings in vain). To a lower plan: a relaxed store; a thread that still
 *       sees the higher one rings for nothing. To a higher one: plan, a new word (GATE1), heavy
 *       barrier, then the look at the lanes: GATE2 with "the plan was raised" in PARKED's place. A
 *       push that compared itself with the lower plan and did not ring has looked before the
 *       barrier, so that look sees it. Without it a push between the two plans sleeps until the
 *       later.
 *   GATE5  owners (queue.h, QUEUE2): with one owner, which is the driver's own thread, the barrier
 *       of GATE4 is left out: that thread's pushes are in its own program order. A thread that
 *       attaches after the driver has counted has the word behind it. (one site: the rest is GATE2
 *       of the queue)
 *   cursor, base_ns: relaxed loads of what only grows. A stale cursor makes a deadline BEYOND_RANGE
 *       too soon, a stale or too new base is an estimate that the driver corrects; a claim needs a
 *       cursor no older than its batch, which the batch brings (run.h, RUN1).
 */
#ifndef TW_MPSC_GATE_H
#define TW_MPSC_GATE_H

#include <stdalign.h>

#include "mpsc/base/assert.h"
#include "mpsc/base/futex.h"

enum {
	TW__GATE_OPEN = 1,      /* the driver ticks: the sequence number stands for "about now" */
	TW__GATE_PARKED = 2,    /* the driver sleeps until plan */
	TW__GATE_ACCEPTING = 4, /* until close */
	TW__GATE_SEQUENCE_SHIFT = 3
};

enum {
	TW__BELL_RUNG = 1,
	TW__BELL_ON_FD = 2 /* the first ring writes to bell_fd; else it wakes the futex */
};

struct tw__gate {
	alignas(TW__CACHE_LINE) _Atomic uint64_t word;
	/* key for which the sleeping driver will wake by itself; UINT64_MAX: for none */
	_Atomic uint64_t plan;
	_Atomic uint64_t cursor;  /* for the layer above: the last tick turned through */
	_Atomic uint64_t base_ns; /* likewise: what pushes of this sequence number may count from */
	/* of the queue (queue.h): constant */
	uint64_t queue_id;
	bool asymmetric; /* membarrier works; decided at creation */

	alignas(TW__CACHE_LINE) _Atomic uint32_t bell; /* TW__BELL_* */
	/* the driver's: what it arms the bell with */
	uint32_t bell_quiet;
	int bell_fd;        /* an eventfd; set by the driver before TW__BELL_ON_FD is (GATE3) */
	uint32_t bell_owed; /* the driver's: writes to bell_fd that it has not read */
};

/* Before any thread knows of it. */
void tw__gate_init(struct tw__gate *gate);

static inline uint64_t tw__gate_look(const struct tw__gate *gate)
{
	return tw_load_acquire(&gate->word); /* GATE1: pairs with publish */
}

/* The look after a push, which GATE2 speaks of. */
static inline uint64_t tw__gate_look_after_push(struct tw__gate *gate)
{
	if (tw_likely(gate->asymmetric)) {
		tw_compiler_barrier();
		return tw_load_acquire(&gate->word); /* GATE1, GATE2 */
	}
	/* GATE2: the push was published by tw__lane_publish_seq_cst */
	return tw_load_seq_cst(&gate->word);
}

/* Before or in place of a push: closed. */
static inline bool tw__gate_refuses(uint64_t word)
{
	return !(word & TW__GATE_ACCEPTING);
}

static inline bool tw__gate_is_open(uint64_t word)
{
	return (word & (TW__GATE_OPEN | TW__GATE_ACCEPTING)) ==
	       (TW__GATE_OPEN | TW__GATE_ACCEPTING);
}

static inline uint64_t tw__gate_sequence(uint64_t word)
{
	return word >> TW__GATE_SEQUENCE_SHIFT;
}

/* Driver only: a new word, with the next sequence number. */
uint64_t tw__gate_publish(struct tw__gate *gate, uint64_t flags);

/*
 * After publishing PARKED or the end of ACCEPTING and before looking at the lanes: from here each
 * push that this driver will not see, sees the new word. False: nothing can be concluded, do not
 * sleep longer than a tick. Any thread that has seen the word.
 */
bool tw__gate_barrier(struct tw__gate *gate);

/*
 * Driver only: forgets earlier rings; whether there was one. Comes before the last look at what a
 * ring may announce (GATE3).
 */
bool tw__gate_arm_bell(struct tw__gate *gate);

/*
 * Driver only, once, and before the bell is armed again: from that on rings are written to this
 * eventfd (non-blocking).
 */
void tw__gate_ring_on(struct tw__gate *gate, int event_fd);

/*
 * Driver only: sleeps until rung or CLOCK_MONOTONIC reaches the deadline (UINT64_MAX: none). Not
 * with an eventfd.
 */
void tw__gate_sleep(struct tw__gate *gate, uint64_t deadline_ns);

/* Wakes the driver. Any thread; a system call only for the first ring of a sleep. */
void tw__gate_ring(struct tw__gate *gate);

#endif
