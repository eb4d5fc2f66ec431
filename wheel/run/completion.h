/* What a closed group calls when its last member has ended. The pairs: wheel/group/group.h. */
#ifndef TW_WHEEL_COMPLETION_H
#define TW_WHEEL_COMPLETION_H

#include "wheel/core/service.h"

/*
 * For close: calls the completions that are due. Their work still has to come back, in polls.
 */
void tw__groups_complete(tw_service *service);

#endif
