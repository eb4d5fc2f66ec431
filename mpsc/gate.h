/*
 * The gate: what the driver publishes for producers, and how they wake it.
 *
 * One word, written by the driver alone and read by each push, says whether the driver ticks (OPEN)
 * or sleeps (PARKED), and whether it accepts what is new (ACCEPTING). Its upper bits are a sequence
 * number of the published time. While the driver sleeps, a push rings if its key is below the plan:
 * the driver's next wake-up; smaller is earlier.
 *
 * Sleep and wake (a Dekker pair: store own side, barrier, load the other's):
 *     push: tail = ...; barrier; word = gate.word; if (word says PARKED and key < plan) ring
 *     park: plan = ...; word = PARKED; heavy barrier; if (any lane unread) do not sleep
 * With membarrier (after userspace-rcu) the push's barrier is for the compiler only. Without, both
 * sides use sequentially consistent operations. Closing is the same pair with the end of ACCEPTING
 * in PARKED's place.
 *
 * If the kernel refuses membarrier later than at creation, park sleeps no longer than a tick, and
 * close returns -ENOTSUP (close.c).
 *
 * Pairing table
 *   GATE1  word: exchange-seq_cst (publish) -> load-acquire (look): plan, and all the driver
 *       published before.
 *   GATE2  lane.tail -> barrier -> word (producer) against word -> heavy barrier -> lane.tail
 *       (driver). Without it a timer pushed in the moment of falling asleep waits for another
 *       wake-up. A young lane (wheel/core/service.h) may stay unread: the driver plans by its
 *       soonest, and looks at that again after the barrier. It is not above the key of any push
 *       that this look would have seen (LANE10); the others ring.
 *   GATE3  bell: or-seq_cst (ring) against exchange-seq_cst (arm the bell), which comes before the
 *       driver's last look at lanes and requests: a ring before it is followed by that look; one
 *       after it wakes the futex, or stays in the descriptor. The bell's value says which of the
 *       two, so the driver knows how many writes to the descriptor are still to come (bell_owed). A
 *       read may take the write of a ring that came after the exchange, so another exchange follows
 *       on it: else the bell stays rung with nothing to read, and nobody writes.
 *   GATE4  plan, in a loop of the user's own: such a driver is PARKED from its first tw_service_fd
 *       to close, also while it turns. To a lower plan: a relaxed store; a thread that still sees
 *       the higher one rings for nothing. To a higher one: plan, a new word (GATE1), heavy barrier,
 *       then the look at the lanes: GATE2 with "the plan was raised" in PARKED's place. Without it
 *       a push between the two plans sleeps until the later.
 *   GATE5  owners (queue.h, QUEUE2): with one owner, the driver's own thread, the barrier is
 *       left out. A thread that attaches after the driver has counted has the word behind it.
 *       (one site: the rest is GATE2 of the queue)
 *   cursor, base_ns: relaxed loads of what only grows. A stale cursor makes a deadline BEYOND_RANGE
 *       too soon, a base is an estimate that the driver corrects; a claim needs a cursor no older
 *       than its batch, which the batch brings (run.h, RUN1).
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

/* Driver only: the next sequence number. */
uint64_t tw__gate_publish(struct tw__gate *gate, uint64_t flags);

/*
 * After publishing PARKED or the end of ACCEPTING and before looking at the lanes: each push that
 * this look misses sees the new word. False: do not sleep longer than a tick.
 */
bool tw__gate_barrier(struct tw__gate *gate);

/* Driver only: forgets earlier rings; whether there was one (GATE3). */
bool tw__gate_arm_bell(struct tw__gate *gate);

/*
 * Driver only, once, before the bell is armed again: rings are then written to this eventfd
 * (non-blocking).
 */
void tw__gate_ring_on(struct tw__gate *gate, int event_fd);

/* Driver only, without an eventfd: until rung or this instant of CLOCK_MONOTONIC. */
void tw__gate_sleep(struct tw__gate *gate, uint64_t deadline_ns);

/* Wakes the driver. Any thread; a system call only for the first ring of a sleep. */
void tw__gate_ring(struct tw__gate *gate);

#endif
