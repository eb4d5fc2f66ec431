/* What settling offers to the rest of the groups' code. */
#ifndef TW_WHEEL_SETTLE_H
#define TW_WHEEL_SETTLE_H

#include "wheel/run.h"

/* Sees to it that the group is settled, by way of the driver. Cannot fail, never blocks. */
void tw__group_settle_soon(tw_service *service, struct tw__group *group, uint32_t index);

/* Settles a piece, here and now. False: what is left of cancelled members is being ended by others. */
bool tw__group_settle(tw_service *service, struct tw__local *local, struct tw__group *group);

#endif
