/* The line of waiters, and who gets a permit that comes back. Under the lock, where nothing else is said. */
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

/* The waiter leaves the line with a permit that counts as held. */
struct waiter *tw__waiter_choose(tw_semaphore *s, struct waiter *waiter);

/* Whether there was a permit to take. If not, WAITERS is set, and the caller joins the line. */
bool tw__permit_take_or_announce(tw_semaphore *s);

/*
 * A permit that is held has no owner any more. The oldest waiter gets it, and is returned for tw__permit_grant; or it is held no
 * longer. False: none was held.
 */
bool tw__permit_pass_on(tw_semaphore *s, struct waiter **chosen);

/* Tells a waiter that it has the permit. Without the lock. NULL does nothing. */
void tw__permit_grant(tw_semaphore *s, struct waiter *waiter);

/* The same for a function, which does not run inside this call, also if the executor runs tickets inside submit. */
void tw__permit_grant_function(tw_semaphore *s, struct function *function);

#endif
