/* What an entry of the wheel means now. */
#ifndef TW_WHEEL_RESOLVE_H
#define TW_WHEEL_RESOLVE_H

#include "wheel/wheel.h"
#include "wheel/core/service.h"

/* The wheel's judge. context: the service. */
void tw__judge(void *context, enum tw__judge_for what_for, const struct tw__place *place, tw__wheel_entry *entries,
	       unsigned n, uint64_t *verdicts);

/* Files an entry that is current, or was a moment ago, to be met by a tick that is not after its timer's deadline. */
void tw__file(tw_service *service, tw__wheel_entry entry, uint64_t tick);

/* Files an entry again that was handed over, or has left the wheel, if it is current. */
void tw__refile(tw_service *service, tw__wheel_entry entry);

/* Files an entry for each armed timer, under a new seq (word.h, LEAP3). */
void tw__refile_all(tw_service *service);

#endif
