/* What a closed group calls when its last member has ended. The pairs: wheel/group/group.h. */
#ifndef TW_WHEEL_COMPLETION_H
#define TW_WHEEL_COMPLETION_H

#include "wheel/core/service.h"

/*
 * For close: calls the completions that are due. True: none is left. Their work still has to come
 * back, in polls.
 */
bool tw__groups_complete(tw_service *service);

/*
 * For close, when nothing runs any more: no completion is accepted from now on. False: one is left.
 */
bool tw__groups_forbid_completions(tw_service *service);

#endif
