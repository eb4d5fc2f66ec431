/* The host: an executor, a loop of the user's, or a function that is called when work is there. */
#ifndef TW_SCHEDULER_HOST_H
#define TW_SCHEDULER_HOST_H

#include "executor/scheduler/internal.h"

/*
 * Something may have become ready, or first among the delayed; or the host has finished. Requests
 * the host, and sets the timer or cancels it. True: the host is requested now, and must be called.
 */
bool tw__scheduler_arm_host(tw_scheduler *scheduler);

/*
 * Arms the host, and releases the lock. Calls a host that is requested now: submits its work, or
 * calls `wanted`. Wakes threads that wait in close. The scheduler may be gone afterwards.
 */
void tw__scheduler_unlock(tw_scheduler *scheduler);

/* Takes back the host timer, if it is set. The lock is held. */
void tw__scheduler_put_timer_away(tw_scheduler *scheduler);

/* What the service's tick thread runs when the timer could not be set: it tries again. */
void tw__scheduler_retry(struct tw__work *work);

#endif
