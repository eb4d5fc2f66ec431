/* The host: an executor, a loop of the user's, or a function that is called when work is there. */
#ifndef TW_SCHEDULER_HOST_H
#define TW_SCHEDULER_HOST_H

#include "executor/scheduler/internal.h"

/*
 * Something may have become ready, or first among the delayed; or the host has finished. Requests
 * the host, and sets the timer or cancels it. True: the caller unlocks with
 * tw__scheduler_unlock_and_call.
 */
bool tw__scheduler_arm_host(tw_scheduler *scheduler);

/*
 * Releases the lock, and calls the host: submits its work, or calls `wanted`. The scheduler may be
 * gone afterwards.
 */
void tw__scheduler_unlock_and_call(tw_scheduler *scheduler);

/* Takes back the host timer, if it is set. The lock is held. */
void tw__scheduler_put_timer_away(tw_scheduler *scheduler);

/* What the service's tick thread runs when the timer could not be set: it tries again. */
void tw__scheduler_retry(struct tw__work *work);

#endif
