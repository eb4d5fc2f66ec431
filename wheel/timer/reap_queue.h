/* Groups on their way to be reaped. The rules: wheel/group/group.h. */
#ifndef TW_WHEEL_REAP_QUEUE_H
#define TW_WHEEL_REAP_QUEUE_H

#include "wheel/core/service.h"

/* Queues the group for the driver, which has it reaped. Cannot fail, never blocks. */
void tw__group_reap_soon(tw_service *service, struct tw__group *group, uint32_t index);

/*
 * The same when a piece was reaped and more is left: the driver goes on in its next poll, before
 * the next tick.
 */
void tw__group_reap_on(tw_service *service, struct tw__group *group, uint32_t index);

/* The entry of a group that was queued has been given back. */
void tw__group_offer_again(tw_service *service, uint32_t index);

#endif
