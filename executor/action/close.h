/* The end of an action, and its release. The scheduler's mutex is held. */
#ifndef TW_EXECUTOR_ACTION_CLOSE_H
#define TW_EXECUTOR_ACTION_CLOSE_H

#include "executor/action/internal.h"

/*
 * Closes the action if it is open, and takes it from its list or timer. True: it has ended here,
 * and the caller calls tw__action_release. False: it was closed before, it runs (the end of its run
 * is its end), or it has no release.
 */
bool tw__action_close(struct tw_action *action, enum tw_fate fate,
		      struct tw__action_deferred *deferred);

/*
 * A closed action has ended. True: the caller calls tw__action_release. Until then the action is
 * pinned and counts as running.
 */
bool tw__action_ended(struct tw_action *action);

/* Calls the release of an action that has ended, with the mutex unlocked. */
void tw__action_release(struct tw_action *action);

/* Tells whether the calling thread is inside a release of one of the scheduler's actions. */
bool tw__actions_in_release(const tw_action_scheduler *scheduler);

#endif
