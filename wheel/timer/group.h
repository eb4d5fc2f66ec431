/*
 * Groups of timers: a list of members under a small lock. A member's place is in struct tw__link.
 * Its record names the group, and its word says EXT.
 *
 * Rules
 * 1. Schedule, under the lock: refuses if the handle is void or the group closed, appends the slot
 *    under the group's serial number, stores the word. Then it pushes the entry.
 * 2. Claim, re-arm, series, disarm and reset touch no list.
 * 3. The thread that makes a member's word free takes the slot off the list, and then gives it
 *    back. So a listed slot is its member's, or free for a moment, and a walk compares no
 *    generations.
 * 4. Cancel moves the serial number on, and walks from the front to the members of later numbers,
 *    A_HOLD ends a hold. A member that waits ends by the compare-and-swap that any thread would
 *    use. Without a release it leaves. With one it is RELEASING, moves to the list of ending
 *    members, and is owed to this call. A member that runs gets ENDED, and leaves at its end. A
 *    member that is free or RELEASING is another thread's. There are as many of these two kinds as
 *    threads, so the walk begins at the front each time.
 * 5. After the walk the canceling thread calls the releases that it owes. A release that waits for
 *    a timer whose release the same thread owes gets -EDEADLK.
 * 6. The members of each list are in the order of their serial numbers. So cancel_wait is over when
 *    both fronts have later numbers than its own.
 * 7. The thread that empties a closed group queues its completion (run/work.c).
 * 8. Destroy makes the handle void. The index is vacant when the group is dead and empty, and its
 *    completion is over. One thread sees that, under the lock. It also makes the next group's
 *    handle, and moves the serial number on. So create needs no lock of a group.
 *
 * Serial numbers wrap. If the oldest member is 2^30 numbers back, cancel does not move the number
 * on: it then also ends members that enter during the call.
 *
 * The lock is a leaf. Between two holds a walk gives way to threads that want it. Weak at: many
 * threads that schedule into one group.
 *
 * Pairing table
 *   GROUP1  enter, leave, walk: each under the lock. A walk that comes after an entering finds the
 *       member on the list, with its word stored. One that came before has moved the serial number.
 *       Without the lock around the store of the word a walk could skip a member as free.
 *   GROUP2  leave (under the lock), then finish_bell -> cancel_wait: bell read under the lock that
 *       showed it what to wait for. What callbacks and releases wrote is visible by the lock.
 *   GROUP3  completion: under the lock. DUE once, by the thread that sees the group closed and
 *       empty; from DUE the work's run and a close of the service contend, and one of them calls
 *       fn.
 */
#ifndef TW_WHEEL_GROUP_H
#define TW_WHEEL_GROUP_H

#include <errno.h>

#include "wheel/core/service.h"
#include "wheel/core/wake.h"

/* What a group calls when its last member has left. */
struct tw__completion {
	struct tw__work work;
	tw_fn *fn;
	void *arg;
};

/* Returns the group that the handle may mean (tw__group_is, under the lock), or NULL. */
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
 * The timer that is about to be armed becomes a member. 0: the lock is held, for the store of its
 * word; then tw__group_entered. Or -ENOENT, -ESHUTDOWN.
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
 * Members have left, or the group has closed. Gives up the lock. serial: not above that of any of
 * them.
 */
static inline void tw__group_left(tw_service *service, struct tw__group *group, uint32_t index,
				  uint32_t serial)
{
	if (tw_unlikely(group->waiters || group->closed))
		tw__group_left_slowly(service, group, index, serial);
	else
		tw__group_unlock(group);
}

/* The caller has made the word free, and still has the slot. index may be 0. */
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

/* They differ by less than half the range (rules). */
static inline bool tw__serial_is_after(uint32_t serial, uint32_t other)
{
	return (int32_t)(serial - other) > 0;
}

/* Tells whether a member of that serial number or an earlier one is left. */
static inline bool tw__group_has_upto(const struct tw__group *group, const struct tw__link *links,
				      uint32_t serial)
{
	TW_ASSERT_TINY_LOCKED(&group->lock);
	uint32_t first = group->first, ending = group->ending_first;
	return (first && !tw__serial_is_after(links[first].serial, serial)) ||
	       (ending && !tw__serial_is_after(links[ending].serial, serial));
}

/* -------------------------------------------------------------------- the run */

/* Counts callbacks and releases of members: a gauge. index may be 0. */
static inline void tw__group_count_run(tw_service *service, uint32_t index, int by)
{
	if (tw_unlikely(index))
		tw_add_relaxed(&tw__group_at(&service->groups, index)->running, (uint32_t)by);
}

void tw__groups_init(struct tw__groups *groups, uint32_t max_timers);

/* Takes no lock, and works in a forked child. */
void tw__groups_unmap(struct tw__groups *groups);

/*
 * call: the public function. then: the completion, or NULL; -EALREADY: there is one. The serial
 * number of the last members that it has ended, or an errno.
 */
enum tw__group_end { TW__GROUP_STAYS, TW__GROUP_CLOSES, TW__GROUP_DIES };
int64_t tw__group_cancel(const char *call, tw_service *service, tw_group handle,
			 enum tw__group_end end, const struct tw__completion *then);

/* The same without a completion: 0, or an errno. */
int tw__group_end(const char *call, tw_service *service, tw_group group, enum tw__group_end end);

#endif
