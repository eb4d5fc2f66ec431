/*
 * Cancelling tasks of a strand, and its end. Called under the strand's lock unless the comment says
 * otherwise.
 */
#ifndef TW_EXECUTOR_STRAND_CANCEL_H
#define TW_EXECUTOR_STRAND_CANCEL_H

#include "executor/strand/internal.h"

/*
 * Closes the strand, and submits its work if some of other layers is left. The lock is released
 * again and again meanwhile.
 */
void tw__strand_begin_close(tw_strand *strand);

/* Sleeps until something has ended; the lock is released meanwhile. False: the time is up. */
bool tw__strand_await_bell(tw_strand *strand, uint64_t deadline_ns);

/* Tells whether this thread is inside the strand, at any depth. task: inside that very task. */
bool tw__strand_inside(const tw_strand *strand, const struct tw__task_node *task);

#endif
