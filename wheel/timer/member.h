/* Membership: how a timer enters its group's list, and leaves it. The rules: group/group.h. */
#ifndef TW_WHEEL_MEMBER_H
#define TW_WHEEL_MEMBER_H

#include <errno.h>

#include "wheel/core/service.h"
#include "wheel/core/wake.h"

/* What a group calls when its last member has left; touched by groups that have one. */
struct tw__completion {
	struct tw__work work;
	tw_fn *fn;
	void *arg;
};

/* The group that a handle may mean (tw__group_is, under the lock), or NULL. */
static inline struct tw__group *tw__group_of(struct tw__groups *groups, uint64_t handle)
{
	uint32_t index = handle & TW__GROUP_INDEX_MASK;
	if (!index || index >= tw_load_acquire(&groups->fresh))
		return NULL;
	return tw__group_at(groups, index);
}

static inline bool tw__group_is(const struct tw__group *group, uint64_t handle)
{
	TW_ASSERT_TINY_LOCKED(&group->lock);
	return tw_load_relaxed(&group->handle) == handle && !tw_load_relaxed(&group->dead);
}

/* ----------------------------------------------------------------- the list */

static inline void tw__member_append(struct tw__link *links, uint32_t *first, uint32_t *last,
				     uint32_t slot)
{
	links[slot].next = 0;
	links[slot].previous = *last;
	*(*last ? &links[*last].next : first) = slot;
	*last = slot;
}

/* From whichever of the two lists it is in. */
static inline void tw__member_unlink(struct tw__group *group, struct tw__link *links, uint32_t slot)
{
	TW_ASSERT_TINY_LOCKED(&group->lock);
	const struct tw__link *link = &links[slot];
	uint32_t *before = link->previous         ? &links[link->previous].next
			   : group->first == slot ? &group->first
						  : &group->ending_first;
	uint32_t *behind = link->next            ? &links[link->next].previous
			   : group->last == slot ? &group->last
						 : &group->ending_last;
	TW_ASSERT(*before == slot && *behind == slot);
	*before = link->next;
	*behind = link->previous;
}

/*
 * The timer that is about to be armed becomes a member. 0: the group's lock is held, for the store
 * of the timer's word; then tw__group_entered. Or -ENOENT, -ESHUTDOWN.
 */
static inline __attribute__((always_inline)) int tw__group_enter(tw_service *service, uint32_t slot,
								 uint64_t handle)
{
	struct tw__group *group = tw__group_of(&service->groups, handle);
	if (tw_unlikely(!group))
		return -ENOENT;
	/* planted: member_unlocked */
	tw__group_lock(group); /* GROUP1 */
	/* one that is dead is closed too */
	if (tw_unlikely(tw_load_relaxed(&group->handle) != handle || group->closed)) {
		bool is_it = tw__group_is(group, handle);
		tw__group_unlock(group);
		return is_it ? -ESHUTDOWN : -ENOENT;
	}
	struct tw__link *links = service->slots.links;
	tw__member_append(links, &group->first, &group->last, slot);
	links[slot].serial = group->serial;
	group->members++;
	return 0;
}

static inline void tw__group_entered(tw_service *service, uint64_t handle)
{
	tw__group_unlock(tw__group_at(&service->groups, handle & TW__GROUP_INDEX_MASK));
}

/* What follows where somebody waits, or where the group is closed. */
void tw__group_left_slowly(tw_service *service, struct tw__group *group, uint32_t index,
			   uint32_t serial);

/*
 * Members have left, or the group has closed. Gives up the lock. serial: not above that of any
 * member that has left under this hold.
 */
static inline void tw__group_left(tw_service *service, struct tw__group *group, uint32_t index,
				  uint32_t serial)
{
	if (tw_unlikely(group->waiters || group->closed))
		tw__group_left_slowly(service, group, index, serial);
	else
		tw__group_unlock(group);
}

/* The caller has made a member's word free, and still has the slot. index: or 0. */
static inline void tw__group_leave(tw_service *service, uint32_t index, uint32_t slot)
{
	if (tw_likely(!index))
		return;
	struct tw__group *group = tw__group_at(&service->groups, index);
	tw__group_lock(group);
	tw__member_unlink(group, service->slots.links, slot);
	group->members--;
	tw__group_left(service, group, index, service->slots.links[slot].serial);
}

/* They differ by less than half the range (group.h). */
static inline bool tw__serial_is_after(uint32_t serial, uint32_t other)
{
	return (int32_t)(serial - other) > 0;
}

/* Whether a member is left that entered under that serial number or an earlier one. */
static inline bool tw__group_has_upto(const struct tw__group *group, const struct tw__link *links,
				      uint32_t serial)
{
	TW_ASSERT_TINY_LOCKED(&group->lock);
	uint32_t first = group->first, ending = group->ending_first;
	return (first && !tw__serial_is_after(links[first].serial, serial)) ||
	       (ending && !tw__serial_is_after(links[ending].serial, serial));
}

/* -------------------------------------------------------------------- the run */

/* A callback or release of a member begins, or is over. Relaxed: a gauge. index: or 0. */
static inline void tw__group_count_run(tw_service *service, uint32_t index, int by)
{
	if (tw_unlikely(index))
		tw_add_relaxed(&tw__group_at(&service->groups, index)->running, (uint32_t)by);
}

#endif
