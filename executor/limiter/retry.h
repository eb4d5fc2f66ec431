/* Timeouts of jobs, and their retries. Under the limiter's lock. */
#ifndef TW_EXECUTOR_LIMITER_RETRY_H
#define TW_EXECUTOR_LIMITER_RETRY_H

#include "executor/limiter/internal.h"

/* At birth, under no lock. */
void tw__times_init(struct tw_limiter *l);

/* The driver looks at the limiter at this instant, or before. */
void tw__times_arm(struct tw_limiter *l, uint64_t at_ns);

/* Cancels the timer if nothing is awaited. */
void tw__times_disarm(struct tw_limiter *l);

/* The driver looks at the job when its next time has come. It has options. */
void tw__job_keep_time(struct tw_limiter *l, struct tw__job *job);
void tw__job_forget_time(struct tw_limiter *l, struct tw__job *job);

/*
 * Whether a time of the job, queued or running, has passed, whether or not the driver has looked.
 */
bool tw__job_is_due(const struct tw__job *job, uint64_t now_ns);

/*
 * A job in line is past a timeout, or past the deadline of its retries: it leaves the line, and
 * settles.
 */
void tw__stay_is_over_time(struct tw_limiter *l, struct tw__job *job, uint64_t now_ns,
			   struct tw__limiter_deferred *deferred);

/*
 * The attempt has just ended, or been completed: one that is past its time is timed out now if the
 * driver has not looked yet.
 */
void tw__attempt_look(struct tw_limiter *l, struct tw__job *job, uint64_t now_ns,
		      struct tw__limiter_deferred *deferred);

/* Whether the job's total timeout has passed. */
static inline bool tw__job_is_past(const struct tw__job *job, uint64_t now_ns)
{
	return job->options && job->options->total_until_ns <= now_ns;
}

/* Whether a delay is one that users may choose. */
static inline bool tw__delay_is_valid(int64_t delay_ns)
{
	return delay_ns >= 0 && (uint64_t)delay_ns <= TW_MAX_DELAY_NS;
}

/* The job has an attempt left, apart from times. */
bool tw__job_has_retries(const struct tw_limiter *l, const struct tw__job *job);

/* An attempt that has failed, or will have by the time it ends, may be followed by another. */
bool tw__job_may_retry(const struct tw_limiter *l, const struct tw__job *job, uint64_t now_ns);

/* The delay before the next attempt by the policy: drawn once for each retry. */
uint64_t tw__job_draw_delay(struct tw_limiter *l, struct tw__job *job);

/*
 * A retry after this delay is neither beyond the deadline of retries nor beyond the job's timeout.
 */
bool tw__job_can_wait(const struct tw__job *job, uint64_t now_ns, uint64_t delay_ns);

/* The job waits for its next attempt until then. */
void tw__job_back_off(struct tw_limiter *l, struct tw__job *job, uint64_t at_ns);

/* The wait is over, and the job settles next. */
void tw__retrying_leave(struct tw_limiter *l, struct tw__job *job);

#endif
