/* Ends the members of a cancelled group that nobody has met. The rules: group.h. */
#ifndef TW_WHEEL_REAP_H
#define TW_WHEEL_REAP_H

#include "wheel/core/local.h"

/* Runs a batch's entry of slot 0: reaps a piece of the group. */
void tw__group_reap_entry(tw_service *service, struct tw__local *local, uint32_t index);

/*
 * From here on a walk sees what the group's bias owner armed before it saw the last cancel
 * (GROUP8). A system call if the group has a bias owner.
 */
void tw__group_make_certain(tw_service *service, struct tw__group *group);

/* Reaps a piece, here and now. False: other threads are ending the last cancelled members. */
bool tw__group_reap(tw_service *service, struct tw__local *local, struct tw__group *group);

#endif
