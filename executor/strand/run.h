/* Running a strand's tasks. Called under the strand's lock unless the comment says otherwise. */
#ifndef TW_EXECUTOR_STRAND_RUN_H
#define TW_EXECUTOR_STRAND_RUN_H

#include "executor/strand/internal.h"

/* Moves the inbox and what is due to the queue. */
void tw__strand_gather(tw_strand *strand);

/*
 * Ends a task that no other thread will end: calls its release, and gives its context back, with
 * the lock released meanwhile. The runner passes a batch, so that nodes are put together. NULL: the
 * node is put immediately.
 */
void tw__strand_end(tw_strand *strand, struct tw__task_node *task, enum tw_fate fate,
		    struct tw__node_batch *batch);

void tw__strand_run_work(struct tw__work *work);

#endif
