/* Actions on a virtual clock. The scheduler's mutex is held. */
#ifndef TW_EXECUTOR_ACTION_VIRTUAL_H
#define TW_EXECUTOR_ACTION_VIRTUAL_H

#include "executor/action/internal.h"

/* Moves the action into the heap. Returns 0, -ENOMEM or -ERANGE. */
int tw__action_join_heap(struct tw_action *action, uint64_t at_ns,
			 struct tw__action_deferred *deferred);

/* The same, without the mutex: tw_action_scheduler_flush of a virtual clock. */
int tw__actions_flush_virtual(tw_action_scheduler *scheduler);

#endif
