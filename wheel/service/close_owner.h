/*
 * Several calls of close: which of them owns the close.
 *
 * `closing` is the strictest mode that a call has asked for; it only falls. One call at a time
 * works, the close owner (close_lock). The owner yields to a waiter immediately, wherever it waits
 * itself. The waiter has the lock until it is done or the next one comes. So each call does its own
 * work by itself, and a drain ends when another call asks for a drop.
 *
 * Pairing table
 *   CLOSE2  waiters: add seq_cst, then finish_bell moves -> bell, then waiters, then sleep on the
 *       bell's value: no sleep misses a waiter. (Waits on batches_out are cut in slices instead:
 *       that word is the executors'.)
 */
#ifndef TW_WHEEL_CLOSE_OWNER_H
#define TW_WHEEL_CLOSE_OWNER_H

#include "wheel/core/service.h"

/* The state of all calls of close of a service. */
struct tw__close_owner {
	_Atomic uint32_t lock;
	_Atomic uint32_t waiters; /* calls that the close owner must let in */
	bool closed;              /* under the lock: nothing is left, all threads have ended */
};

/* One call of close. */
struct tw__close_call {
	tw_service *service;
	const struct tw_close_options *options;
	bool alone;
	bool visited_enough;     /* the visitor has returned non-zero */
	uint64_t drain_until_ns; /* a drain's timeout */
	uint64_t deadline_ns;    /* no wait for callbacks goes on after it */
	uint64_t own_until_ns;   /* nor one for the tick thread after this */
};

/*
 * The mode that holds: a stricter one than the call's own if another call has asked for it. 0: none
 * yet.
 */
static inline uint32_t tw__close_mode(const struct tw__close_call *c)
{
	return tw_load_acquire(&c->service->phase.closing);
}

/* Asks for a mode: what is stricter already stays. */
void tw__close_demand(tw_service *service, uint32_t mode);

/*
 * Takes the lock, and asks for the call's mode. first: immediately; else, having yielded, after the
 * others. A drain that times out while other calls work asks for a drop. 0, -ETIMEDOUT.
 */
int tw__close_enter(const struct tw__close_call *c, bool first);
void tw__close_leave(const struct tw__close_call *c);

/* Whether another wants to be let in. */
bool tw__close_must_yield(const struct tw__close_call *c);

#endif
