/* What a closed group calls when its last member has ended. The rule and the pairs: group.h. */
#ifndef TW_WHEEL_COMPLETION_H
#define TW_WHEEL_COMPLETION_H

#include "wheel/core/service.h"

/* Calls the group's completion if it has one and no member is left. */
void tw__group_complete(tw_service *service, struct tw__group *group, uint32_t index);

/* For close: calls the completions that are due. True: none is left. */
bool tw__groups_complete(tw_service *service);

/*
 * For close, when nothing runs any more: no completion is accepted from now on. False: one is left.
 */
bool tw__groups_forbid_completions(tw_service *service);

#endif
