/* The end of an action, and what leads to it. The lock is held. */
#ifndef TW_EXECUTOR_ACTION_END_H
#define TW_EXECUTOR_ACTION_END_H

#include "executor/action/internal.h"

/* Gives up a reference: the last one frees the action. */
void tw__action_put(struct tw_action *action);

/* The owner gives the action up, if he has not done so. */
void tw__action_disown(struct tw_action *action);

/* Takes an armed action from its line or timer. Its context stays. */
void tw__action_detach(struct tw_action *action);

/* The link that leads to an immediate of this number, or the last one of its bucket. */
struct tw_action **tw__immediate_link(tw_action_scheduler *scheduler, uint64_t id);

/* The action is an immediate, and its number is of no use any more. */
void tw__immediate_gone(struct tw_action *action);

/*
 * Closes the action if it is open, and takes it from its line or timer. True: it has ended here,
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
 * Calls the release of an action that has ended. The lock is released meanwhile. The action may be
 * gone afterwards.
 */
void tw__action_release(struct tw_action *action);

#endif
