/* Delayed tasks of a strand. Called under the strand's lock unless the comment says otherwise. */
#ifndef TW_EXECUTOR_STRAND_TIME_H
#define TW_EXECUTOR_STRAND_TIME_H

#include "executor/strand/internal.h"

/* Puts a task into the heap and sets the timer. Returns 0; -ENOMEM or -EAGAIN: nothing changed. */
int tw__strand_delay(tw_strand *strand, struct tw__task_node *task);

/*
 * A run of a series begins: the instants that have passed before it are missed, unless the policy
 * has them made up for. Called without the lock.
 */
void tw__strand_series_begins(tw_service *service, struct tw__task_node *task);

/*
 * The run of a series has returned. The series goes into the heap, or into the queue if it is due.
 * False: its count is used up.
 */
bool tw__strand_continue(tw_strand *strand, struct tw__task_node *task);

/* Moves a piece of what is due to the queue. When nothing due is left it sets the timer. */
void tw__strand_move_due(tw_strand *strand);

/* Gives back memory of the heap that has not been needed for a while, a piece at a time. */
void tw__strand_shrink_heap(struct tw__strand_delays *delays);

/* Sets the timer to the earliest task. Returns 0, or as tw__strand_delay. */
int tw__strand_arm(tw_strand *strand);

/* The timer is not wanted any more. */
void tw__strand_disarm(tw_strand *strand);

#endif
