/* An action's deadline. The scheduler's mutex is held. */
#ifndef TW_EXECUTOR_ACTION_ARM_H
#define TW_EXECUTOR_ACTION_ARM_H

#include "executor/action/internal.h"

/* A detached action goes to `due`. refusal 0: to be run. Else it is not, and `failed` is told why. */
void tw__action_join_due(struct tw_action *action, int refusal);

#endif
