/*
 * The semaphore: one word for permits, and a line of waiters.
 *
 * While nobody waits, acquire and release are one compare-and-swap. All else takes the lock.
 *
 * The word: permits that are out (held, 31 bits), the capacity (31 bits), WAITERS. While WAITERS is
 * set only the owner of the lock changes the word. n: the permits of a caller.
 *
 *   transition    from                         to         by whom
 *   take          no WAITERS, held + n <= cap  held + n   any thread
 *   give back     no WAITERS, held >= n        held - n   any thread
 *   announce      no WAITERS, held + n > cap   WAITERS    a waiter that joins the line, locked
 *   give to line  WAITERS, held >= n           held - n   a releaser, locked; then start
 *   start         WAITERS, held + n <= cap     held + n   locked; n of the first, while it fits
 *   take back     any                          held - n,  locked; a refused function is in line
 *                                              WAITERS    again
 *   last leaves   WAITERS                      none       the last waiter, locked
 *   resize        any                          cap        set_capacity, locked; then start
 *
 * Start follows whatever may let the first waiter fit: permits that return, a capacity that grows,
 * a waiter that leaves.
 *
 * Invariants, whenever the lock is free: 1. WAITERS if and only if the line is not empty, 2. then
 * held + n > cap for the n of the first, or it was refused. 3. No permit is lost or doubled.
 * 4. No waiter starts before an earlier one, except threads before a refused function.
 *
 * A waiter, under the lock: QUEUED (in line) -> COMING (it has permits; a function's work is with
 * the executor). A function: -> RUNNING -> its node is put. A cancel of one that is COMING makes it
 * ENDED, and its permits go on; the executor's call of its work puts the node.
 *
 * A function that the executor refuses gives its permits back, and is in line again, in its old
 * place. Threads get the permits. Functions are started again at the next tick.
 *
 * Pairing table
 *   SEM1  held: CAS acq_rel (give back) -> CAS acq_rel (take): what holders of the permits did. A
 *       start goes by the lock, then SEM2 or the executor.
 *   SEM2  granted: store-release (grant) -> load-acquire (the thread that sleeps). Then nothing of
 *       the waiter, on the thread's stack, is touched: the wake-up goes to its address alone.
 *
 * Model: test/model/sem.pml.
 */
#ifndef TW_EXECUTOR_SEMAPHORE_H
#define TW_EXECUTOR_SEMAPHORE_H

#include "executor/base/object.h"
#include "tickwheel/semaphore.h"

#define COUNT_MASK UINT64_C(0x7fffffff)
#define CAPACITY_SHIFT 31
#define WAITERS (UINT64_C(1) << 63)

enum { QUEUED, COMING, RUNNING, ENDED };

struct waiter {
	struct tw__in_line place; /* QUEUED: in the line; COMING: among those chosen */
	uint64_t number;          /* in the order in which they came */
	uint32_t n;
	_Atomic uint32_t granted; /* SEM2 */
	uint8_t state;
	bool is_thread;
};

struct function {
	struct tw__node node;
	tw_fn *fn;
	void *arg, *context;
	struct waiter waiter;
	struct tw__work work;
};

_Static_assert(sizeof(struct function) <= TW__SMALL_NODE, "two cache lines");

static inline uint64_t held_of(uint64_t word)
{
	return word & COUNT_MASK;
}

static inline uint64_t capacity_of(uint64_t word)
{
	return word >> CAPACITY_SHIFT & COUNT_MASK;
}

static inline bool has_room(uint64_t word, uint32_t n)
{
	return held_of(word) + n <= capacity_of(word);
}

struct tw_semaphore {
	_Alignas(TW__CACHE_LINE) struct tw__object object; /* its work offers refused functions */
	_Atomic uint64_t word;
	/* What follows is under the object's lock. */
	struct tw__line line;
	struct tw__line chosen;            /* have permits; semaphore_unlock starts them */
	uint64_t waiting, waiting_threads; /* in line */
	uint64_t came;                     /* waiters, and functions that found permits */
	uint64_t out;                      /* functions that have permits, and are not over */
	uint64_t refusals, over_releases;
};

static inline struct waiter *waiter_of(tw__link link)
{
	return TW__OWNER(struct waiter, place, link);
}

static inline struct function *function_of(struct waiter *waiter)
{
	return TW__OWNER(struct function, waiter, waiter);
}

/* The fast way. False: there are not n permits, or somebody waits. */
static inline bool semaphore_take(tw_semaphore *s, uint32_t n)
{
	uint64_t word = tw_load_relaxed(&s->word);
	do {
		if (tw_unlikely(word & WAITERS || !has_room(word, n)))
			return false;
	} while (tw_unlikely(!tw_cas_acq_rel(&s->word, &word, word + n))); /* SEM1 */
	return true;
}

#endif
