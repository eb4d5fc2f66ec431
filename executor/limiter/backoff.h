/*
 * Whether a failed attempt is followed by another, and after which delay. Under the limiter's lock.
 */
#ifndef TW_EXECUTOR_LIMITER_BACKOFF_H
#define TW_EXECUTOR_LIMITER_BACKOFF_H

#include "executor/limiter/internal.h"

/* Whether a delay is one that users may choose. */
static inline bool tw__delay_is_valid(int64_t delay_ns)
{
	return delay_ns >= 0 && (uint64_t)delay_ns <= TW_MAX_DELAY_NS;
}

/* The job has an attempt left, apart from times. */
bool tw__job_has_retries(const struct tw_limiter *l, const struct tw__job *job);

/* An attempt that has failed, or will have by the time it ends, may be followed by another. */
bool tw__job_may_retry(const struct tw_limiter *l, const struct tw__job *job, uint64_t now_ns);

/* Notes what the attempt that ends now says about the next one. */
static inline void tw__job_note_next(struct tw__job *job, uint32_t next, int64_t delay_ns)
{
	if (tw_likely(!job->options))
		return;
	job->options->next = next;
	job->options->next_delay_ns = (uint64_t)delay_ns;
}

/* The delay before the next attempt: drawn once for each retry, or chosen by the attempt. */
uint64_t tw__job_draw_delay(struct tw_limiter *l, struct tw__job *job);

/*
 * A retry after this delay is neither beyond the deadline of retries nor beyond the job's timeout.
 */
bool tw__job_can_wait(const struct tw__job *job, uint64_t now_ns, uint64_t delay_ns);

/* Takes a retry from the budget of all jobs. False: less than one is left. */
bool tw__budget_take(struct tw_limiter *l);

/* A job has succeeded. */
void tw__budget_earn(struct tw_limiter *l);

/* The job waits for its next attempt until then. */
void tw__job_back_off(struct tw_limiter *l, struct tw__job *job, uint64_t at_ns);

/* The wait is over. deferred NULL: the job enters the queue next. */
void tw__retrying_leave(struct tw_limiter *l, struct tw__job *job,
			struct tw__limiter_deferred *deferred);

#endif
