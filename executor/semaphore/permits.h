/* The line of waiters, and who gets permits. Under the lock, if not said otherwise. */
#ifndef TW_EXECUTOR_SEMAPHORE_PERMITS_H
#define TW_EXECUTOR_SEMAPHORE_PERMITS_H

#include "executor/semaphore/internal.h"

/* Nobody else changes the word while WAITERS is set. */
static inline void tw__permits_set(tw_semaphore *s, uint64_t word)
{
	tw_store_release(&s->word, word); /* SEM1, for those that take the fast way next */
}

/* The waiter is last in line. WAITERS is set. */
void tw__semaphore_join(tw_semaphore *s, struct tw__waiter *waiter);

/* It leaves the line for the list of those chosen; NULL: it is no waiter any more. */
void tw__semaphore_leave(tw_semaphore *s, struct tw__waiter *waiter, struct tw__line *chosen);

/*
 * Chooses those that fit, in the order of the line. The first that does not fit ends this, so that
 * one that waits for many permits gets its turn.
 */
void tw__semaphore_start(tw_semaphore *s, struct tw__line *chosen);

/* Whether there were n permits to take. If not, WAITERS is set, and the caller joins the line. */
bool tw__permits_take_or_announce(tw_semaphore *s, uint32_t n);

/* n permits that are held have no owner any more; then start. False: fewer were held. */
bool tw__permits_pass_on(tw_semaphore *s, uint32_t n, struct tw__line *chosen);

/* A function that had permits is over. */
void tw__function_put(tw_semaphore *s, struct function *function);

/*
 * Tells those chosen that they have their permits. Without the lock. Nothing of a function runs in
 * here, whatever the executor is.
 */
void tw__semaphore_grant(tw_semaphore *s, struct tw__line *chosen);

/* The object's work, on the driver: offers again what the executor has refused. */
void tw__semaphore_offer_again(struct tw__work *work);

#endif
