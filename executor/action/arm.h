/* An action's deadline. The scheduler's mutex is held. */
#ifndef TW_EXECUTOR_ACTION_ARM_H
#define TW_EXECUTOR_ACTION_ARM_H

#include "executor/action/internal.h"

/* Puts a detached action into `due`. refused: it will not run, and `failed` gets -ESHUTDOWN. */
void tw__action_join_due(struct tw_action *action, bool refused);

#endif
