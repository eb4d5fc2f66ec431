/* How attempts and jobs end. Under the lock. */
#ifndef TW_EXECUTOR_LIMITER_SETTLE_H
#define TW_EXECUTOR_LIMITER_SETTLE_H

#include "executor/limiter/internal.h"

/* The job comes into line, for the first time or for a retry. */
void tw__job_enqueue(struct tw_limiter *l, struct tw__job *job);

/* A job that waits leaves its line. */
void tw__job_leave_line(struct tw_limiter *l, struct tw__job *job);

/* Something about the job has changed: chooses what is next, and frees the node at its end. */
void tw__job_go_on(struct tw_limiter *l, struct tw__job *job);

/* Final. The job is in no line. */
void tw__settle(struct tw_limiter *l, struct tw__job *job, enum tw_job_status status, int error);

/* `stop` is called for the attempt, once. */
void tw__job_stop(struct tw_limiter *l, struct tw__job *job);

/* The attempt has really ended. */
void tw__attempt_end(struct tw_limiter *l, struct tw__job *job, int error, void *value);

/* A retry that waits for that long is one that the policy allows. */
bool tw__job_may_retry(struct tw_limiter *l, const struct tw__job *job, uint64_t delay_ns);

/* The delay before the next attempt by the policy: drawn once for each retry. */
uint64_t tw__job_draw_delay(struct tw_limiter *l, struct tw__job *job);

/* retry.allow has answered. */
void tw__retry_answered(struct tw_limiter *l, struct tw__job *job, bool wanted, uint64_t delay_ns);

/* A time of the job has passed; and acts on it, if so. */
bool tw__job_is_due(struct tw_limiter *l, const struct tw__job *job);
void tw__job_look(struct tw_limiter *l, struct tw__job *job);

/* The due is set for the job's next instant, or stopped. */
void tw__job_keep_time(struct tw__job *job);
void tw__job_time(struct tw__due *due);

/* Room for one result more than there may come. 0 or -ENOMEM. */
int tw__results_reserve(struct tw_limiter *l);
void tw__results_put(struct tw__results *results);

/* The listeners that wait are called next, with the results. */
void tw__idle_reached(struct tw_limiter *l);

/* It is in this thread's list. */
bool tw__job_is_mine(const struct tw__job *job);

#endif
