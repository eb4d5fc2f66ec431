/* What settling shares with the rest of the groups' code, and the group's lock. */
#ifndef TW_WHEEL_SETTLE_H
#define TW_WHEEL_SETTLE_H

#include "wheel/run.h"

static inline struct tw__group *tw__group_at(struct tw__groups *groups, uint32_t index)
{
	/* Acquire, for who has the index from a side record that was published by a timer's word, not by create. */
	return &tw_load_acquire(&groups->table)[index];
}

/* Sees to it that the group is settled, by way of the driver. Cannot fail, never blocks. */
void tw__group_settle_soon(tw_service *service, struct tw__group *group, uint32_t index);

/* Settles a piece, here and now. False: what is left of cancelled members is being ended by others. */
bool tw__group_settle(tw_service *service, struct tw__local *local, struct tw__group *group);

/* ------------------------------------------------------------------- the lock */

/*
 * A spin lock, since it is held for a few stores and taken twice for each member: one read-modify-write to take it, none to give it up.
 * Whoever has spun for long sleeps: the holder may be waiting for this processor, perhaps at a lower priority.
 */
enum { TW__GROUP_SPINS = 100, TW__GROUP_NAP_NS = 50000 };

static inline bool tw__group_try_lock(struct tw__group *group)
{
	return tw_exchange_acquire(&group->lock, 1) == 0;
}

void tw__group_lock_slowly(struct tw__group *group);

static inline void tw__group_lock(struct tw__group *group)
{
	if (tw_unlikely(!tw__group_try_lock(group)))
		tw__group_lock_slowly(group);
}

static inline void tw__group_unlock(struct tw__group *group)
{
	tw_store_release(&group->lock, 0);
}

#endif
