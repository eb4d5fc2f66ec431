/* The timer or the work that drives an action scheduler. The scheduler's mutex is held. */
#ifndef TW_EXECUTOR_ACTION_HOST_H
#define TW_EXECUTOR_ACTION_HOST_H

#include "executor/action/internal.h"

/*
 * Moves the action into the open batch, and requests the batch's turn. Returns 0, or an error: then
 * nothing has changed.
 */
int tw__action_join_batch(struct tw_action *action);
void tw__action_leave_batch(struct tw_action *action);
void tw__actions_host_init(tw_action_scheduler *scheduler);

/* Work on the executor will serve. tw__actions_unlock submits it. Needs a service. */
void tw__actions_ask_for_work(tw_action_scheduler *scheduler);

/* The action is an immediate, and its number is of no use any more. */
void tw__immediate_gone(struct tw_action *action);

#endif
