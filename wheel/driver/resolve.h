/* What an entry of the wheel means now. */
#ifndef TW_WHEEL_RESOLVE_H
#define TW_WHEEL_RESOLVE_H

#include "wheel/wheel.h"
#include "wheel/core/service.h"

void tw__resolve(void *context, enum tw__resolve_for what_for, const struct tw__place *place,
		 const tw__wheel_entry *entries, unsigned n, uint64_t *due_ticks);

/* Whether an entry of the timer is in the wheel that will be met no later than `tick`. */
bool tw__location_covers(const tw_service *service, tw__wheel_entry entry, uint64_t tick);

/* An entry has left the wheel without having been resolved. */
void tw__location_in_batch(tw_service *service, tw__wheel_entry entry);

/* Files an entry of an armed timer. back: it was handed over, and is not any more. */
void tw__file(tw_service *service, uint32_t slot, uint64_t word, uint64_t tick, bool back);

/* Files an entry that did not get its run, if its timer is alive. */
void tw__refile(tw_service *service, uint64_t entry);

#endif
