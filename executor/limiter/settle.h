/* How attempts and jobs end. Under the lock. */
#ifndef TW_EXECUTOR_LIMITER_SETTLE_H
#define TW_EXECUTOR_LIMITER_SETTLE_H

#include "executor/limiter/internal.h"

/* Final. The job is in no line. */
void tw__settle(struct tw_limiter *l, struct tw__job *job, enum tw_job_status status, int error);

/* It has settled, and what held up `done` may be over: `done` is next. */
void tw__job_tell_when_free(struct tw_limiter *l, struct tw__job *job);
void tw__job_told(struct tw_limiter *l, struct tw__job *job);
void tw__job_look_for_release(struct tw_limiter *l, struct tw__job *job);
void tw__job_finish(struct tw_limiter *l, struct tw__job *job);

/* Frees the node when its time has come. */
void tw__job_look_for_end(struct tw_limiter *l, struct tw__job *job);

/* `stop` is called for the attempt, once. */
void tw__job_stop(struct tw_limiter *l, struct tw__job *job);

/* The attempt has really ended. */
void tw__attempt_end(struct tw_limiter *l, struct tw__job *job, int error, void *value,
		     uint64_t now_ns);

/* What follows on its end; error and value are the attempt's. */
void tw__attempt_decide(struct tw_limiter *l, struct tw__job *job, uint64_t now_ns);

/* Somebody has completed it, and its function has but to return. */
void tw__attempt_completed(struct tw_limiter *l, struct tw__job *job);

/* It is past a time if the clock says so. */
void tw__attempt_look(struct tw_limiter *l, struct tw__job *job, uint64_t now_ns);

bool tw__job_has_retries(const struct tw_limiter *l, const struct tw__job *job);

/* The delay before the next attempt by the policy: drawn once for each retry. */
uint64_t tw__job_draw_delay(struct tw_limiter *l, struct tw__job *job);

/* retry.allow has answered. */
void tw__retry_answered(struct tw_limiter *l, struct tw__job *job, bool wanted, uint64_t delay_ns);

/* The due is set for the job's next instant, or stopped. */
void tw__job_keep_time(struct tw__job *job);
void tw__job_time(struct tw__due *due);
bool tw__job_is_due(const struct tw__job *job, uint64_t now_ns);

/* A job in line is past a time: it leaves, and settles. */
void tw__stay_is_over(struct tw_limiter *l, struct tw__job *job, uint64_t now_ns);

/* Room for one result more than there may come. 0 or -ENOMEM. */
int tw__results_reserve(struct tw_limiter *l);
void tw__results_put(struct tw__results *results);
void tw__result_of(const struct tw__job *job, struct tw_job_result *out);

/* The listener is called next, with the results. */
void tw__listener_is_due(struct tw_limiter *l, struct tw__listener *listener);

/* Puts the job into the list: `todo` is due. */
void tw__tell(struct tw_limiter *l, struct tw__tells *tells, struct tw__job *job,
	      enum tw__job_todo todo);

/* It is in this thread's list. */
bool tw__job_is_mine(const struct tw__job *job);

#endif
