/* The pool's queue. */
#ifndef TW_EXECUTOR_POOL_QUEUE_H
#define TW_EXECUTOR_POOL_QUEUE_H

#include "executor/pool/parts.h"

/* The worker that the calling thread is, or NULL. */
extern _Thread_local struct tw__worker *tw__this_worker;

static inline bool tw__is_worker_of(const tw_pool *pool)
{
	return tw__this_worker && tw__this_worker->pool == pool;
}

/* A futex to wake when the lock is free, or NULL. */
typedef _Atomic uint32_t tw__pool_wake;

static inline void tw__pool_unlock(tw_pool *pool, tw__pool_wake *wake)
{
	tw__tiny_unlock(&pool->lock);
	if (wake)
		tw__futex_wake(wake, 1);
}

/* ------------------------------------------------------------- under the lock */

void tw__items_append(struct tw__items *items, struct tw__work *item);
struct tw__work *tw__items_pop(struct tw__items *items); /* it is not empty */

/* Tells whether something waits that a worker may take. */
bool tw__pool_waits(tw_pool *pool);

/* Something waits, and no worker is about to take it. */
bool tw__pool_is_short(tw_pool *pool);

/* Who sleeps, searches, or is armed has changed. */
void tw__pool_tell_wanted(tw_pool *pool);

/* The overflow, or the number of submitters that wait, has changed. */
void tw__pool_tell_behind(tw_pool *pool);

/* ----------------------------------------------------------- without the lock */

/*
 * Pushes a plain task, or an item, and calls a worker for it. Returns 0, -ESHUTDOWN, or, of a plain
 * task, -EAGAIN: full.
 */
int tw__pool_push(tw_pool *pool, const struct tw__pool_task *task);

/*
 * What the worker does next. It is done with what it had taken. Sleeps until there is something.
 * False: the thread ends.
 */
bool tw__worker_next(struct tw__worker *self, struct tw__taken *taken);

/* No submit is accepted any more. Wakes all workers, which end when they find nothing. */
void tw__pool_call_all(tw_pool *pool);

#endif
