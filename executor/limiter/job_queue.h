/* The queue of waiting jobs: a list for each priority. Under the limiter's lock. */
#ifndef TW_EXECUTOR_LIMITER_JOB_QUEUE_H
#define TW_EXECUTOR_LIMITER_JOB_QUEUE_H

#include "executor/limiter/internal.h"

/* A job of that priority can be added from now on. 0 or -ENOMEM. */
int tw__job_queue_reserve(struct tw__job_queue *queue, int32_t priority);

/* The last of its priority. */
void tw__job_queue_add(struct tw__job_queue *queue, struct tw__job *job);
void tw__job_queue_remove(struct tw__job_queue *queue, struct tw__job *job);

/* The job that is next; it stays queued. NULL: none. */
struct tw__job *tw__job_queue_first(struct tw__job_queue *queue);

void tw__job_queue_free(struct tw__job_queue *queue);

#endif
