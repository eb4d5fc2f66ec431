/* An action's deadline. The scheduler's mutex is held. */
#ifndef TW_EXECUTOR_ACTION_ARM_H
#define TW_EXECUTOR_ACTION_ARM_H

#include "executor/action/internal.h"

/*
 * Puts a detached action into `due`. refusal 0: it will run. Else it will not, and `failed` gets
 * the reason.
 */
void tw__action_join_due(struct tw_action *action, int refusal);

#endif
