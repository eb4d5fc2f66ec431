/* What settling offers to the rest of the groups' code. */
#ifndef TW_WHEEL_SETTLE_H
#define TW_WHEEL_SETTLE_H

#include "wheel/run/run.h"

/* Sees to it that the group is settled, by way of the driver. Cannot fail, never blocks. */
void tw__group_settle_soon(tw_service *service, struct tw__group *group, uint32_t index);

/* group.c. Moves the serial number on, and sets flags: the new word. 0: there is no such group. */
uint64_t tw__group_shift(const tw_service *service, struct tw__group *group, uint64_t handle, uint64_t flags);

/* From here on what the group's keeper armed before it saw the last cancel is seen by a walk (GROUP8). A system call if there is a keeper. */
void tw__group_make_certain(tw_service *service, struct tw__group *group);

/* Settles a piece, here and now. False: what is left of cancelled members is being ended by others. */
bool tw__group_settle(tw_service *service, struct tw__local *local, struct tw__group *group);

#endif
