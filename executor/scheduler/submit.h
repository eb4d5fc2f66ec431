/* Tasks in the queue. Under the lock. */
#ifndef TW_EXECUTOR_SCHEDULER_SUBMIT_H
#define TW_EXECUTOR_SCHEDULER_SUBMIT_H

#include "executor/scheduler/internal.h"

/*
 * The first of a heap that is not cleared (but perhaps running), or NULL. Those before it are
 * removed.
 */
struct tw__task *tw__scheduler_head(tw_scheduler *scheduler, struct tw__heap *heap);

/* Frees the node of a task that has ended. */
void tw__scheduler_give_back(tw_scheduler *scheduler, struct tw__task *task);

/* A cleared task has left its heap. */
void tw__scheduler_forget(tw_scheduler *scheduler, struct tw__task *task);

/* Moves at most `most` due tasks from the timer heap to the task heap. */
void tw__scheduler_promote(tw_scheduler *scheduler, int64_t now_ns, size_t most);

/* The task that ran has ended and leaves the task heap: immediately if it is the head. */
void tw__scheduler_remove_ran(tw_scheduler *scheduler, struct tw__task *task);

#endif
