/* The timer or the work that drives an action scheduler. The scheduler's mutex is held. */
#ifndef TW_EXECUTOR_ACTION_HOST_H
#define TW_EXECUTOR_ACTION_HOST_H

#include "executor/action/internal.h"

/* Moves it into the open batch, and sees to it that the batch's turn comes. 0, or why it could not: then nothing has changed. */
int tw__action_join_batch(struct tw_action *action, struct tw__action_deferred *deferred);
void tw__action_leave_batch(struct tw_action *action, struct tw__action_deferred *deferred);
void tw__actions_host_init(tw_action_scheduler *scheduler);

#endif
