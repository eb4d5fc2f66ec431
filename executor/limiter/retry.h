/* Timeouts of a job, and the timer of its retry. Under the limiter's lock. */
#ifndef TW_EXECUTOR_LIMITER_RETRY_H
#define TW_EXECUTOR_LIMITER_RETRY_H

#include "executor/limiter/internal.h"

/* At birth, under no lock. */
void tw__times_init(struct tw_limiter *l);

/* Arms, moves or disarms the job's timer by its state. 0, or why no timer could be had. */
int tw__job_arm(struct tw_limiter *l, struct tw__job *job);

/*
 * The same; without a timer its time is kept by looking at it in each tick of the service, until
 * there is one.
 */
void tw__job_keep_time(struct tw_limiter *l, struct tw__job *job);
void tw__job_disarm(struct tw_limiter *l, struct tw__job *job);

/*
 * Whether a time of the job, queued or running, has passed, whatever its timer says. Reads the
 * clock if there is one to keep.
 */
bool tw__job_is_late(const struct tw_limiter *l, const struct tw__job *job);

/* The same at a reading of the clock. */
bool tw__job_is_due(const struct tw__job *job, uint64_t now_ns);

/*
 * The attempt has just ended, or been completed: one that is past its time is timed out now if its
 * timer has not come yet.
 */
void tw__attempt_look(struct tw_limiter *l, struct tw__job *job, uint64_t now_ns,
		      struct tw__limiter_deferred *deferred);

#endif
