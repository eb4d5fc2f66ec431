/* User code of a limiter, and the works that call it. */
#ifndef TW_EXECUTOR_LIMITER_TELL_H
#define TW_EXECUTOR_LIMITER_TELL_H

#include "executor/limiter/internal.h"

/*
 * Calls what is in this thread's list, and what follows from that, then drops n users, and gives up
 * the lock.
 */
void tw__limiter_unlock(struct tw_limiter *l, uint32_t n);

/* What the works do. */
void tw__limiter_tell(struct tw__work *work);
void tw__limiter_run(struct tw__work *work);

#endif
