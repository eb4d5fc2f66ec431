/*
 * Membership: how a timer enters its group's list, leaves it, and is counted while it runs. Inlined, since it is paid for each
 * member that is scheduled and cancelled. What it rests on: group.h.
 */
#ifndef TW_WHEEL_MEMBER_H
#define TW_WHEEL_MEMBER_H

#include <errno.h>

#include "wheel/run.h"

/* The group that a handle may mean: whether it does is for the caller to check (K7). NULL: none. */
static inline struct tw__group *tw__group_of(struct tw__groups *groups, uint64_t handle)
{
	uint32_t index = handle & TW__GROUP_INDEX_MASK;
	if (!index || index >= tw_load_acquire(&groups->fresh))
		return NULL;
	return tw__group_at(groups, index);
}

static inline bool tw__group_is(const struct tw__group *group, uint64_t word, uint64_t handle)
{
	return !(word & TW__GROUP_DEAD) && tw_load_relaxed(&group->handle) == handle; /* K7: after the word */
}

/* ----------------------------------------------------------------- the list */

static inline void tw__member_link(struct tw__group *group, struct tw__slots *slots, uint32_t option)
{
	struct tw__option *member = &slots->options[option];
	member->next_member = 0;
	member->previous_member = group->last;
	if (group->last)
		slots->options[group->last].next_member = option;
	else
		group->first = option;
	group->last = option;
	group->members++;
}

static inline void tw__member_unlink(struct tw__group *group, struct tw__slots *slots, const struct tw__option *member)
{
	if (member->previous_member)
		slots->options[member->previous_member].next_member = member->next_member;
	else
		group->first = member->next_member;
	if (member->next_member)
		slots->options[member->next_member].previous_member = member->previous_member;
	else
		group->last = member->previous_member;
	group->members--;
}

/* Whoever waits for old members waits until the first one is a newer one. */
static inline bool tw__member_tells(const struct tw__group *group, const struct tw__slots *slots, uint32_t option)
{
	if (tw_likely(!group->waiters) || group->first != option)
		return false;
	const struct tw__option *member = &slots->options[option];
	return !member->next_member ||
	       tw_load_relaxed(&slots->options[member->next_member].tag) != tw_load_relaxed(&member->tag);
}

/*
 * Makes the timer in the slot a member of the group whose handle stands in its side record's tag; without one does nothing. 0: the
 * group's lock is held until tw__group_entered, between which the timer's word is stored. -ENOENT, -ESHUTDOWN.
 */
static inline int tw__group_enter(struct tw__groups *groups, struct tw__slots *slots, uint32_t option, uint64_t entry)
{
	struct tw__option *member = &slots->options[option];
	uint64_t handle = tw_load_relaxed(&member->tag); /* our own as yet */
	if (!handle)
		return 0;
	struct tw__group *group = tw__group_of(groups, handle);
	if (!group)
		return -ENOENT;
	tw__group_lock(group); /* K2 */
	uint64_t word = tw_load_acquire(&group->word);
	bool is_it = tw__group_is(group, word, handle);
	if (tw_unlikely(!is_it || word & TW__GROUP_CLOSED)) {
		tw__group_unlock(group);
		return is_it ? -ESHUTDOWN : -ENOENT;
	}
	tw_store_relaxed(&member->tag, (word & ~(uint64_t)TW__GROUP_INDEX_MASK) |
					   (handle & TW__GROUP_INDEX_MASK)); /* published by W1 */
	member->member = entry;
	tw__member_link(group, slots, option);
	return 0;
}

static inline void tw__group_entered(struct tw__groups *groups, const struct tw__option *option)
{
	if (option->member)
		tw__group_unlock(tw__group_at(groups, tw_load_relaxed(&option->tag) & TW__GROUP_INDEX_MASK));
}

/* A timer of that side record has come to its end; without a group does nothing. */
static inline void tw__group_leave(tw_service *service, uint32_t option)
{
	struct tw__slots *slots = &service->slots;
	const struct tw__option *member = &slots->options[option];
	uint64_t tag = tw_load_relaxed(&member->tag);
	if (!tag)
		return;
	struct tw__group *group = tw__group_at(&service->groups, tag & TW__GROUP_INDEX_MASK);
	tw__group_lock(group);
	bool tells = tw__member_tells(group, slots, option);
	tw__member_unlink(group, slots, member);
	/* Relaxed: with the lock held, what destroy did before it took the lock is seen; if it comes later it looks itself. */
	if (tw_unlikely(tw_load_relaxed(&group->word) & TW__GROUP_DEAD))
		tw__group_unlock_and_vacate(&service->groups, group, tag & TW__GROUP_INDEX_MASK);
	else
		tw__group_unlock(group);
	if (tw_unlikely(tells))
		tw__ring_finish(service); /* K6 */
}

/* -------------------------------------------------------------------- the run */

/* Relaxed: a gauge. The timer is the caller's already, and holds the group. */
static inline void tw__group_run_begins(struct tw__groups *groups, uint64_t tag)
{
	tw_add_relaxed(&tw__group_at(groups, tag & TW__GROUP_INDEX_MASK)->word, 1);
}

/*
 * True: the group has been cancelled since; the caller settles the timer, if it has armed it (K3). The index may be another group's by
 * now, which for a moment counted one running more than it had.
 */
static inline bool tw__group_run_is_over(struct tw__groups *groups, uint64_t tag)
{
	struct tw__group *group = tw__group_at(groups, tag & TW__GROUP_INDEX_MASK);
	return (tw_add_acq_rel(&group->word, (uint64_t)-1) ^ tag) >> TW__GROUP_INDEX_BITS;
}

#endif
