/* Immediates. The scheduler's mutex is held. */
#ifndef TW_EXECUTOR_ACTION_IMMEDIATE_H
#define TW_EXECUTOR_ACTION_IMMEDIATE_H

#include "executor/action/internal.h"

void tw__immediate_gone(struct tw_action *action);

#endif
