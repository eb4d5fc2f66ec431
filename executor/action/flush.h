/* Runs due actions. The lock is held. */
#ifndef TW_EXECUTOR_ACTION_FLUSH_H
#define TW_EXECUTOR_ACTION_FLUSH_H

#include "executor/action/internal.h"

/* The calling thread becomes the flusher. */
void tw__actions_begin(tw_action_scheduler *scheduler);

/*
 * One flush of `due`: at most `most` runs. Returns its first failure, which the caller returns to
 * its own caller; `failed` is called for the others. told: `failed` is called for the first one,
 * too.
 */
int tw__actions_flush_due(tw_action_scheduler *scheduler, bool told, size_t most);

/*
 * The flusher does what is left in `due` and `turn`, up to a bound, and stops being the flusher.
 * Work on the executor does the rest.
 */
void tw__actions_serve(tw_action_scheduler *scheduler);

/* The work. */
void tw__actions_work(struct tw__work *work);

#endif
