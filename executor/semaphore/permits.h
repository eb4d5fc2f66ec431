/*
 * The line of waiters, and who gets permits that come back. Under the lock, where nothing else is
 * said.
 */
#ifndef TW_EXECUTOR_SEMAPHORE_PERMITS_H
#define TW_EXECUTOR_SEMAPHORE_PERMITS_H

#include "executor/semaphore/internal.h"

/* Nobody else changes the word while WAITERS is set. */
static inline void tw__permits_set(tw_semaphore *s, uint64_t word)
{
	tw_store_release(&s->word, word); /* SEM1, for those that take the fast way next */
}

/* The waiter joins the line. The caller has set WAITERS, or is about to. */
void tw__waiter_join(tw_semaphore *s, struct waiter *waiter, bool comes_back);
void tw__waiter_leave(tw_semaphore *s, struct waiter *waiter);

/* The oldest waiter, or NULL. */
struct waiter *tw__waiter_oldest(tw_semaphore *s);

/* Whether there were n permits to take. If not, WAITERS is set, and the caller joins the line. */
bool tw__permits_take_or_announce(tw_semaphore *s, uint32_t n);

/*
 * Chooses the waiters for which permits are there, oldest first, linked by `next`, for
 * tw__permits_grant.
 */
struct waiter *tw__waiters_start(tw_semaphore *s);

/*
 * n permits that are held have no owner any more: they are held no longer, and *chosen are the
 * waiters that they start. False: fewer were held.
 */
bool tw__permits_pass_on(tw_semaphore *s, uint32_t n, struct waiter **chosen);

/* Tells these waiters that they have their permits. Without the lock. NULL does nothing. */
void tw__permits_grant(tw_semaphore *s, struct waiter *waiter);

/*
 * The same for a function, which does not run inside this call, also if the executor runs tickets
 * inside submit.
 */
void tw__permits_grant_function(tw_semaphore *s, struct function *function);

/* The executor has refused the function: a thread goes first, or it is offered again. */
void tw__permits_refused(tw_semaphore *s, struct function *function);

#endif
