/* Telling who waits until a limiter is idle. Under the limiter's lock. */
#ifndef TW_EXECUTOR_LIMITER_IDLE_H
#define TW_EXECUTOR_LIMITER_IDLE_H

#include "executor/limiter/internal.h"

/*
 * All that was added is finished: the present listeners are called for this idle, whatever is
 * submitted before they are. idle.c
 */
void tw__idle_reached(struct tw_limiter *l);

/* At birth, when the limiter has its base. */
void tw__idle_init(struct tw_limiter *l);

/* Tells idle listeners, with the lock given up meanwhile. The caller counts in out.calls. */
void tw__idle_tell(struct tw_limiter *l);

/* One that listens, under this thread's context; NULL: no memory. */
struct tw__listener *tw__listener_make(tw_idle_fn *fn, void *arg);

/* It is called at the next idle; for this one if the limiter is idle. */
void tw__listener_add(struct tw_limiter *l, struct tw__listener *listener,
		      struct tw__limiter_deferred *deferred);

#endif
