/*
 * Several closers: whose turn it is.
 *
 * `closing` is the strictest mode asked for so far; it only falls. One closer at a time works
 * (close_lock); a waiter is let in immediately, wherever the other waits, and has the lock until it
 * is done or the next one comes: so it finds what it asked for done by itself and no other, and a
 * drain ends when a drop is asked for.
 *
 * Pairing table
 *   CLOSE2  waiters: add seq_cst, then finish_bell moves -> bell, then waiters, then sleep on the
 *       bell's value: no waiter is slept through. (Waits on batches_out are cut in slices instead:
 *       that word is the executors'.)
 */
#ifndef TW_WHEEL_CLOSERS_H
#define TW_WHEEL_CLOSERS_H

#include "wheel/core/service.h"

/* The closers' part of a service. */
struct tw__closers {
	_Atomic uint32_t lock;
	_Atomic uint32_t waiters; /* closers that the one with the lock is to let in */
	bool settled;             /* under the lock: nothing is left, all threads have ended */
};

/* One call of close. */
struct tw__closer {
	tw_service *service;
	const struct tw_close_options *options;
	bool alone;
	bool visited_enough;     /* the visitor has returned non-zero */
	uint64_t drain_until_ns; /* a drain's timeout */
	uint64_t deadline_ns;    /* no wait for callbacks goes on after it */
	uint64_t own_until_ns;   /* nor one for the tick thread after this */
};

/*
 * The mode that holds: a stricter one than the closer's own if another has asked for it. 0: none
 * yet.
 */
static inline uint32_t tw__close_mode(const struct tw__closer *c)
{
	return tw_load_acquire(&c->service->phase.closing);
}

/* Asks for a mode: what is stricter already stays. */
void tw__close_demand(tw_service *service, uint32_t mode);

/*
 * Takes the lock, and asks for the closer's mode. first: immediately; else, having made way, after
 * the others. A drain whose time is up while others are at it asks for a drop. 0, -ETIMEDOUT.
 */
int tw__closer_enter(const struct tw__closer *c, bool first);
void tw__closer_leave(const struct tw__closer *c);

/* Whether another wants to be let in. */
bool tw__closer_is_called(const struct tw__closer *c);

#endif
