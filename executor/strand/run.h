/* Running a strand's tasks. Under the strand's lock, where nothing else is said. */
#ifndef TW_EXECUTOR_STRAND_RUN_H
#define TW_EXECUTOR_STRAND_RUN_H

#include "executor/strand/internal.h"

/* Moves the mail and what is due to the queue. */
void tw__strand_gather(tw_strand *strand);

/* Ends a task that nobody else will: calls its release, and gives its context back, with the lock given up for it. */
void tw__strand_end(tw_strand *strand, struct tw__task_node *task, enum tw_fate fate);

void tw__strand_run_work(struct tw__work *work);

#endif
