/* A strand's runner, and what it shares with calls. */
#ifndef TW_EXECUTOR_STRAND_RUN_H
#define TW_EXECUTOR_STRAND_RUN_H

#include "executor/strand/internal.h"

/* Moves a piece of the inbox to the line. True: there is more. The lock is held. */
bool tw__strand_gather(tw_strand *strand);

/* The task is in no line, or delayed or coming, and ends. The lock is held. */
void tw__strand_end(tw_strand *strand, struct tw__item *task, enum tw_fate fate,
		    struct tw__node_batch *batch);

void tw__strand_run_work(struct tw__work *work);

#endif
