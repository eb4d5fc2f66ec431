/* The queue of jobs, and what may start. Under the limiter's lock. */
#ifndef TW_EXECUTOR_LIMITER_QUEUE_H
#define TW_EXECUTOR_LIMITER_QUEUE_H

#include "executor/limiter/internal.h"

/* Into the queue, or for another stay there. */
void tw__job_enqueue(struct tw_limiter *l, struct tw__job *job, uint64_t now_ns);
void tw__job_dequeue(struct tw_limiter *l, struct tw__job *job, uint64_t now_ns);

/* One waits less: there is room. */
void tw__pending_less(struct tw_limiter *l);

/*
 * How many jobs queued could start now: permits and tokens that are there. 0 while nothing may
 * start.
 */
uint64_t tw__startable(struct tw_limiter *l, uint64_t now_ns);

/* Sends as many runners as there are jobs, permits and tokens for. */
void tw__dispatch(struct tw_limiter *l, uint64_t now_ns, struct tw__limiter_deferred *deferred);

/* One runner more, if there is a use for it. 0 or -ENOMEM. */
int tw__runner_reserve(struct tw_limiter *l, uint64_t wanted);

#endif
