/* The end of an action, and its release. The scheduler's mutex is held. */
#ifndef TW_EXECUTOR_ACTION_CLOSE_H
#define TW_EXECUTOR_ACTION_CLOSE_H

#include "executor/action/internal.h"

/*
 * Closes the action if it is open, and takes it from its list or timer. True: it has ended here,
 * and the caller calls tw__action_release. False: it was closed before, or it runs (the end of its
 * run is its end).
 */
bool tw__action_close(struct tw_action *action, enum tw_fate fate);

/*
 * A closed action has ended. The caller calls tw__action_release. Until then the action is
 * referenced, and one that has a release counts as running.
 */
void tw__action_ended(struct tw_action *action);

/*
 * Calls the release of an action that has ended. The mutex is unlocked
 * meanwhile. The action may be gone afterwards.
 */
void tw__action_release(struct tw_action *action);

#endif
