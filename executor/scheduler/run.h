/* The host, and a thread that runs a task. */
#ifndef TW_EXECUTOR_SCHEDULER_RUN_H
#define TW_EXECUTOR_SCHEDULER_RUN_H

#include "executor/scheduler/internal.h"

/*
 * Drops n users and the lock. If there is something to run, and the host does not know, asks the
 * host for a turn: submits the work, or calls `wanted`. The scheduler may be gone afterwards.
 */
void tw__scheduler_unlock(tw_scheduler *scheduler, uint32_t n);

/* Calls the done function of a task that a cancel or a close has ended. The lock is not held. */
void tw__scheduler_tell(tw_scheduler *scheduler, struct tw__told told, enum tw_fate fate);

/* The work. */
void tw__scheduler_host_called(struct tw__work *work);

#endif
