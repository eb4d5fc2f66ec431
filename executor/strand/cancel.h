/* Cancelling tasks of a strand, and its end. Under the strand's lock, where nothing else is said. */
#ifndef TW_EXECUTOR_STRAND_CANCEL_H
#define TW_EXECUTOR_STRAND_CANCEL_H

#include "executor/strand/internal.h"

/*
 * Disposes of the strand; the lock is given up again and again meanwhile. True: the caller submits the
 * strand's work once it has given up the lock.
 */
bool tw__strand_dispose(tw_strand *strand);

/* Sleeps until something has ended; the lock is given up meanwhile. False: the time is up. */
bool tw__strand_await_bell(tw_strand *strand, uint64_t deadline_ns);

/* Whether this thread is inside of the strand, however deep; task: of that very task. */
bool tw__strand_inside(const tw_strand *strand, const struct tw__task_node *task);

#endif
