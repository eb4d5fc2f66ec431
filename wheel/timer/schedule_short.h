/* The short way of scheduling, where a task takes it. */
#ifndef TW_WHEEL_SCHEDULE_SHORT_H
#define TW_WHEEL_SCHEDULE_SHORT_H

#include "wheel/core/service.h"

/*
 * A delayed timer that is a member of the group with this handle, and nothing else. False: it is
 * out of the ordinary, or the group refuses; nothing was written. Else *r is what the call is to
 * return.
 */
bool tw__schedule_member_shortly(tw_service *service, uint64_t group, uint64_t delay_ns, tw_fn *fn,
				 void *arg, tw_timer *out, int *r);

#endif
