/* An action's deadline. The scheduler's mutex is held. */
#ifndef TW_EXECUTOR_ACTION_ARM_H
#define TW_EXECUTOR_ACTION_ARM_H

#include "executor/action/internal.h"

/*
 * Puts a detached action into `due`. refusal 0: it will run. Else it will not, and `failed` gets
 * the reason.
 */
void tw__action_join_due(struct tw_action *action, int refusal);

/* Moves the action into the heap. Returns 0, -ENOMEM or -ERANGE. */
int tw__action_join_heap(struct tw_action *action, uint64_t at_ns);

/*
 * Moves the actions that are due at the virtual clock's instant into `due`. With
 * TW_ACTION_FLAG_CANCEL_BATCH a failure closes them. Without a virtual clock it does nothing.
 */
void tw__actions_take_instant(tw_action_scheduler *scheduler);

/* The same, without the mutex: tw_action_scheduler_flush of a virtual clock. */
int tw__actions_flush_virtual(tw_action_scheduler *scheduler);

#endif
