/* Running what is due. The scheduler's mutex is held. */
#ifndef TW_EXECUTOR_ACTION_FLUSH_H
#define TW_EXECUTOR_ACTION_FLUSH_H

#include "executor/action/internal.h"

/* The calling thread becomes the flusher. */
void tw__actions_begin(tw_action_scheduler *scheduler);

/*
 * The flusher does what is left in `due` and `turn`, up to a bound, and stops being the flusher.
 * Work on the executor does the rest.
 */
void tw__actions_serve(tw_action_scheduler *scheduler);

/* Becomes the flusher and serves, unless another thread is the flusher: then that thread serves. */
void tw__actions_drive(tw_action_scheduler *scheduler);

/*
 * One flush. Returns its first failure, which the caller returns to its own caller; `failed` is
 * called for the others. told: `failed` is called for the first one, too.
 */
int tw__actions_flush_due(tw_action_scheduler *scheduler, bool told);
int tw__actions_flush_batch(tw_action_scheduler *scheduler, bool told);

/* The host has called for the open batch. */
void tw__actions_turn(tw_action_scheduler *scheduler);

#endif
