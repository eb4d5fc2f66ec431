/*
 * Membership: how a timer enters its group's list, leaves it or is cached there, and is counted
 * while it runs. Inlined, since each schedule and cancel of a member pays for it. The rules:
 * wheel/group/group.h.
 */
#ifndef TW_WHEEL_MEMBER_H
#define TW_WHEEL_MEMBER_H

#include <errno.h>

#include "wheel/core/local.h"

/*
 * The group that a handle may mean: whether it does is for the caller to check (GROUP7). NULL:
 * none.
 */
static inline struct tw__group *tw__group_of(struct tw__groups *groups, uint64_t handle)
{
	uint32_t index = handle & TW__GROUP_INDEX_MASK;
	if (!index || index >= tw_load_acquire(&groups->fresh))
		return NULL;
	return tw__group_at(groups, index);
}

static inline bool tw__group_is(const struct tw__group *group, uint64_t word, uint64_t handle)
{
	/* GROUP7: after the word */
	return !(word & TW__GROUP_DEAD) && tw_load_relaxed(&group->handle) == handle;
}

/*
 * The n-th from the top of what a thread keeps leaves its group, and is free; all that it keeps of
 * a group (0: of any).
 */
void tw__cached_let_go(tw_service *service, struct tw__local *local, uint32_t n);
void tw__cached_flush(tw_service *service, struct tw__local *local, uint32_t group);

/* ----------------------------------------------------------------- the list */

static inline void tw__member_unlink(struct tw__group *group, struct tw__slots *slots,
				     struct tw__ext *member)
{
	TW_ASSERT_TINY_LOCKED(&group->lock);
	if (!tw_load_relaxed(&member->linked))
		return; /* thrown out (reap.c) */
	if (member->previous_member)
		slots->exts[member->previous_member].next_member = member->next_member;
	else
		group->first = member->next_member;
	if (member->next_member)
		slots->exts[member->next_member].previous_member = member->previous_member;
	else
		group->last = member->previous_member;
	group->members--;
	tw_store_release(&member->linked, 0); /* GROUP12 */
}

/* Whether a tag is of a time before the serial number of `word`. */
static inline bool tw__tag_is_before(uint64_t tag, uint64_t word)
{
	return (int64_t)((tag | TW__GROUP_INDEX_MASK) - (word | TW__GROUP_INDEX_MASK)) < 0;
}

/*
 * The timer has come to its end, release included: the record is cached, or about to leave. The
 * group's lock is held.
 */
static inline bool tw__member_is_over(const struct tw__slots *slots, const struct tw__ext *member)
{
	uint64_t entry = tw_load_acquire(&member->member);
	/* GROUP9 */
	return (tw_load_seq_cst(&slots->words[tw__entry_slot(entry)]) ^ entry) >>
	       TW__GENERATION_SHIFT;
}

/*
 * Whether a member is left from before the serial number of `word`. Looks at cached ones, at those
 * that are about to leave, and at one more. The group's lock is held.
 */
static inline bool tw__group_has_before(const struct tw__group *group,
					const struct tw__slots *slots, uint64_t word)
{
	TW_ASSERT_TINY_LOCKED(&group->lock);
	for (uint32_t i = group->first; i; i = slots->exts[i].next_member) {
		if (!tw__tag_is_before(tw_load_relaxed(&slots->exts[i].tag), word))
			return false;
		if (!tw__member_is_over(slots, &slots->exts[i]))
			return true;
	}
	return false;
}

/* Under the lock: whether the member that has just left leaves the completion to be called. */
static inline bool tw__group_is_complete(const tw_service *service, const struct tw__group *group)
{
	return tw_load_relaxed(&group->completion) == TW__COMPLETION_PENDING &&
	       !tw__group_has_before(group, &service->slots, tw_load_relaxed(&group->word));
}

/* Gives the index of a dead and empty group back. The lock is held, and given up. */
void tw__group_unlock_and_vacate(struct tw__groups *groups, struct tw__group *group,
				 uint32_t index);

/* How a timer became a member; negative: an errno, it did not. */
enum tw__entered {
	TW__NO_MEMBER,
	TW__ENTERED_LOCKED, /* the group's lock is held */
	TW__ENTERED_CACHED  /* its record was on the list already */
};

/*
 * tw__group_enter for an extension record that is on no list; the group's lock is held afterwards.
 */
int tw__group_enter_slowly(struct tw__groups *groups, struct tw__slots *slots, uint32_t ext,
			   uint64_t entry);

/* A cached extension record becomes the slot's timer's. */
static inline int tw__group_enter_cached(struct tw__ext *member, uint64_t entry)
{
	tw_store_release(&member->member, entry); /* GROUP8 */
	return TW__ENTERED_CACHED;
}

/*
 * Makes the timer in the slot a member of the group whose handle is in its extension record's tag,
 * or, if the record was cached, of the group whose list it is on. Followed by tw__group_entered;
 * between the two the timer's word is stored. enum tw__entered, -ENOENT, -ESHUTDOWN.
 */
static inline int tw__group_enter(struct tw__groups *groups, struct tw__slots *slots, uint32_t ext,
				  uint64_t entry)
{
	struct tw__ext *member = &slots->exts[ext];
	if (tw_unlikely(!tw_load_acquire(&member->linked))) /* GROUP12 */
		return tw__group_enter_slowly(groups, slots, ext, entry);
	return tw__group_enter_cached(member, entry);
}

/*
 * The group was cancelled while its bias owner armed the timer. True: it was closed too, and the
 * timer is taken back, as if it had never been: the slot is free, the extension record is still the
 * caller's. False: the timer was a member, and has ended.
 */
bool tw__group_retract(tw_service *service, struct tw__local *local, uint64_t tag, uint64_t entry);

/*
 * The timer's word has been stored: `entry` is its. True: the group has closed meanwhile, and the
 * timer was taken back.
 */
static inline bool tw__group_entered(tw_service *service, struct tw__local *local, uint32_t ext,
				     uint64_t entry, int entered)
{
	if (entered == TW__NO_MEMBER)
		return false;
	uint64_t tag = tw_load_relaxed(&service->slots.exts[ext].tag);
	if (entered == TW__ENTERED_LOCKED) {
		tw__group_unlock(tw__group_at(&service->groups, tag & TW__GROUP_INDEX_MASK));
		return false;
	}
	tw_compiler_barrier(); /* GROUP8 */
	return tw_unlikely(tw__tag_is_stale(&service->groups, tag)) &&
	       tw__group_retract(service, local, tag, entry);
}

/*
 * The extension record leaves its group's list, if it is on it still. cancelled: by a call, not
 * with its group. True: it is cached.
 */
bool tw__group_leave_slowly(tw_service *service, struct tw__local *local, uint32_t ext,
			    bool cancelled);

static inline _Atomic uint64_t *tw__cached_at(struct tw__cached_members *cached, uint32_t n)
{
	TW_ASSERT(n < tw_load_relaxed(&cached->count) &&
		  tw_load_relaxed(&cached->count) <= TW__CACHED_MEMBERS);
	return &cached->items[tw_load_relaxed(&cached->count) - 1 - n];
}

/* Caches an extension record; group: the index. */
static inline void tw__cache_member(tw_service *service, struct tw__local *local, uint32_t ext,
				    uint32_t group)
{
	struct tw__cached_members *cached = &local->cached;
	if (tw_unlikely(tw_load_relaxed(&cached->count) == TW__CACHED_MEMBERS))
		tw__cached_let_go(service, local, TW__CACHED_MEMBERS - 1);
	uint32_t count = tw_load_relaxed(&cached->count);
	tw_store_relaxed(&cached->items[count], (uint64_t)group << 32 | ext);
	tw_store_relaxed(&cached->count, count + 1);
}

/* Takes out the n-th from the top: the extension record. The top comes in its place. */
static inline uint32_t tw__cached_remove(struct tw__cached_members *cached, uint32_t n)
{
	_Atomic uint64_t *at = tw__cached_at(cached, n);
	uint64_t item = tw_load_relaxed(at);
	if (n)
		tw_store_relaxed(at, tw_load_relaxed(tw__cached_at(cached, 0)));
	tw_store_relaxed(&cached->count, tw_load_relaxed(&cached->count) - 1);
	return (uint32_t)item;
}

/*
 * Whether the thread caches the extension record of a member that it has just ended: as the group's
 * bias owner, unless a caller waits for the member's end, or the group was cancelled.
 */
static inline bool tw__caches(const tw_service *service, const struct tw__local *local,
			      uint64_t tag)
{
	const struct tw__group *group =
	    &tw_load_acquire(&service->groups.table)[tag & TW__GROUP_INDEX_MASK];
	return local && tw_load_relaxed(&group->bias_owner) == local &&
	       !((tw_load_acquire(&group->word) ^ tag) >> TW__GROUP_INDEX_BITS) &&
	       tw_load_seq_cst(&group->waiters) == 0; /* GROUP9 */
}

/*
 * A timer with an extension record has come to its end; its slot is free. The group's bias owner
 * caches the record where it is. cancelled: it was cancelled. local may be NULL.
 */
static inline void tw__ext_give_back(tw_service *service, struct tw__local *local, uint32_t ext,
				     bool cancelled)
{
	uint64_t tag = tw_load_relaxed(&service->slots.exts[ext].tag);
	if (tag) {
		if (tw_likely(tw__caches(service, local, tag))) {
			tw__cache_member(service, local, ext, tag & TW__GROUP_INDEX_MASK);
			return;
		}
		if (tw__group_leave_slowly(service, local, ext, cancelled))
			return;
	}
	tw__ext_put(&service->slots, local ? &local->exts : NULL, ext);
}

/*
 * A cached extension record that can be a member of the group again without leaving its list: since
 * it was one, no serial number has passed. 0: there is none.
 */
static inline uint32_t tw__cached_take(tw_service *service, struct tw__local *local,
				       uint64_t handle)
{
	struct tw__cached_members *cached = &local->cached;
	uint32_t index = handle & TW__GROUP_INDEX_MASK, n = 0,
		 count = tw_load_relaxed(&cached->count);
	while (n < count && tw__cached_group(tw_load_relaxed(tw__cached_at(cached, n))) != index)
		n++;
	if (n == count)
		return 0;
	const struct tw__ext *member =
	    &service->slots.exts[(uint32_t)tw_load_relaxed(tw__cached_at(cached, n))];
	const struct tw__group *group = tw__group_at(&service->groups, index);
	uint64_t word = tw_load_acquire(&group->word); /* GROUP7 */
	bool open = tw__group_is(group, word, handle) && !(word & TW__GROUP_CLOSED);
	bool same = !((word ^ tw_load_relaxed(&member->tag)) >> TW__GROUP_INDEX_BITS);
	if (tw_unlikely(!open || !same || !tw_load_relaxed(&member->linked))) {
		tw__cached_let_go(service, local, n);
		return 0;
	}
	return tw__cached_remove(cached, n);
}

/* -------------------------------------------------------------------- the run */

/* Relaxed: a gauge. The timer is the caller's already, and holds the group. */
static inline void tw__group_run_begins(struct tw__groups *groups, uint64_t tag)
{
	tw_add_relaxed(&tw__group_at(groups, tag & TW__GROUP_INDEX_MASK)->word, 1);
}

/*
 * True: the group has been cancelled since; the caller ends the timer, if it has armed it (GROUP3).
 * The index may be another group's by now, which for a moment counted one run more than it had.
 */
static inline bool tw__group_run_is_over(struct tw__groups *groups, uint64_t tag)
{
	struct tw__group *group = tw__group_at(groups, tag & TW__GROUP_INDEX_MASK);
	return (tw_add_acq_rel(&group->word, (uint64_t)-1) ^ tag) >> TW__GROUP_INDEX_BITS;
}

#endif
