/* Delayed tasks of a strand. Under the strand's lock, where nothing else is said. */
#ifndef TW_EXECUTOR_STRAND_TIME_H
#define TW_EXECUTOR_STRAND_TIME_H

#include "executor/strand/internal.h"

/* Puts a task into the heap and sets the timer. 0, -ENOMEM, -EAGAIN: nothing changed. */
int tw__strand_delay(tw_strand *strand, struct tw__task_node *task);

/*
 * The run of a series has returned, or was passed over as too late: the series goes into the heap, or into the queue if it is due. False: its
 * count is used up.
 */
bool tw__strand_continue(tw_strand *strand, struct tw__task_node *task, bool passed_over);

/* Moves a piece of what is due to the queue. When nothing due is left it sets the timer. */
void tw__strand_move_due(tw_strand *strand);

/* Gives back memory of the heap that it has not needed for a while, a piece at a time. */
void tw__strand_trim_heap(struct tw__strand_delays *delays);

/* Sets the timer to the earliest task. 0, or as tw__strand_delay. */
int tw__strand_arm(tw_strand *strand);

/* The timer is not wanted any more. */
void tw__strand_disarm(tw_strand *strand);

/* When a series that was due at nominal_ns runs next; public for its test. */
uint64_t tw__strand_next(uint64_t nominal_ns, uint64_t period_ns, uint64_t last_ns, uint64_t now_ns,
			 uint64_t tolerance_ns);

#endif
