/* Ends the members of a cancelled group that nobody has met. The rules: group.h. */
#ifndef TW_WHEEL_REAP_H
#define TW_WHEEL_REAP_H

#include "wheel/core/local.h"

/* Runs a batch's entry of slot 0: settles a piece of the group. */
void tw__group_settle_entry(tw_service *service, struct tw__local *local, uint32_t index);

/*
 * From here on a walk sees what the group's keeper armed before it saw the last cancel (GROUP8). A
 * system call if the group has a keeper.
 */
void tw__group_make_certain(tw_service *service, struct tw__group *group);

/*
 * Settles a piece, here and now. False: other threads are ending what is left of the cancelled
 * members.
 */
bool tw__group_settle(tw_service *service, struct tw__local *local, struct tw__group *group);

#endif
