/*
 * Membership, what is not inline: a timer enters the list of its group, leaves it, or is taken back
 * because the group was closed meanwhile. The inline part: member.h. The rules:
 * wheel/group/group.h.
 *
 * Progress: enter and leave hold the group's lock for a few stores.
 */
#include "wheel/timer/member.h"

#include "wheel/core/wake.h"
#include "wheel/timer/end.h"
#include "wheel/timer/reap_queue.h"

void tw__group_unlock_and_vacate(struct tw__groups *groups, struct tw__group *group, uint32_t index)
{
	TW_ASSERT_TINY_LOCKED(&group->lock);
	/*
	 * Relaxed: with the lock held, what destroy did before it took the lock is seen; if it
	 * comes later it looks itself.
	 */
	bool vacated = !group->members && !group->vacant &&
		       tw_load_relaxed(&group->word) & TW__GROUP_DEAD &&
		       tw_load_relaxed(&group->completion) != TW__COMPLETION_PENDING;
	group->vacant |= vacated;
	if (vacated)
		tw_store_relaxed(&group->bias_owner, NULL);
	tw__group_unlock(group);
	if (!vacated)
		return;
	pthread_mutex_lock(&groups->lock);
	group->next_free = groups->free;
	groups->free = index;
	pthread_mutex_unlock(&groups->lock);
}

static void tw__member_link(struct tw__group *group, struct tw__slots *slots, uint32_t ext)
{
	TW_ASSERT_TINY_LOCKED(&group->lock);
	struct tw__ext *member = &slots->exts[ext];
	member->next_member = 0;
	member->previous_member = group->last;
	if (group->last)
		slots->exts[group->last].next_member = ext;
	else
		group->first = ext;
	group->last = ext;
	group->members++;
	tw_store_relaxed(&member->linked, 1);
}

int tw__group_enter_slowly(struct tw__groups *groups, struct tw__slots *slots, uint32_t ext,
			   uint64_t entry)
{
	struct tw__ext *member = &slots->exts[ext];
	uint64_t handle = tw_load_relaxed(&member->tag); /* our own as yet */
	if (!handle)
		return TW__NO_MEMBER;
	struct tw__group *group = tw__group_of(groups, handle);
	if (!group)
		return -ENOENT;
	/* planted: member_unlocked */
	tw__group_lock(group); /* GROUP2 */
	uint64_t word = tw_load_acquire(&group->word);
	bool is_it = tw__group_is(group, word, handle);
	if (tw_unlikely(!is_it || word & TW__GROUP_CLOSED)) {
		tw__group_unlock(group);
		return is_it ? -ESHUTDOWN : -ENOENT;
	}
	tw_store_relaxed(&member->tag, (word & ~(uint64_t)TW__GROUP_INDEX_MASK) |
					   /* published by WORD1 */
					   (handle & TW__GROUP_INDEX_MASK));
	/* GROUP8: after the tag */
	tw_store_release(&member->member, entry);
	tw__member_link(group, slots, ext);
	return TW__ENTERED_LOCKED;
}

/*
 * The first thread that cancels a single member will do it again: it caches them from now on. The
 * lock is held.
 */
static bool becomes_bias_owner(tw_service *service, struct tw__group *group,
			       struct tw__local *local, uint64_t tag)
{
	TW_ASSERT_TINY_LOCKED(&group->lock);
	if (!local || !service->gate.asymmetric || tw_load_relaxed(&group->bias_owner) ||
	    tw_load_relaxed(&group->waiters))
		return false;
	if ((tw_load_acquire(&group->word) ^ tag) >> TW__GROUP_INDEX_BITS)
		return false;
	tw_store_relaxed(&group->bias_owner, local);
	return true;
}

bool tw__group_leave_slowly(tw_service *service, struct tw__local *local, uint32_t ext,
			    bool cancelled)
{
	struct tw__ext *member = &service->slots.exts[ext];
	uint64_t tag = tw_load_relaxed(&member->tag);
	uint32_t index = tag & TW__GROUP_INDEX_MASK;
	struct tw__group *group = tw__group_at(&service->groups, index);
	tw__group_lock(group);
	if (cancelled && becomes_bias_owner(service, group, local, tag)) {
		tw__group_unlock(group);
		tw__cache_member(service, local, ext, index);
		return true;
	}
	tw__member_unlink(group, &service->slots, member);
	/*
	 * A thread that waits for old members waits until the last of one serial number has left.
	 */
	bool tells = tw_unlikely(tw_load_relaxed(&group->waiters)) &&
		     !tw__group_has_before(group, &service->slots, tag + TW__GROUP_SERIAL_ONE);
	bool completes = tw__group_is_complete(service, group); /* GROUP10 */
	tw__group_unlock_and_vacate(&service->groups, group, index);
	if (tells)
		tw__ring_finish(service); /* GROUP6 */
	if (tw_unlikely(completes))
		/* at worst another group's, which does no harm */
		tw__group_reap_soon(service, group, index);
	return false;
}

/*
 * Whether the group that the tag is of takes no members any more. Read after the tag was seen stale
 * (GROUP8).
 */
static bool has_closed(const struct tw__group *group, uint64_t tag)
{
	uint64_t word = tw_load_acquire(&group->word);
	return word & TW__GROUP_CLOSED ||
	       tw__tag_is_before(tag, tw_load_relaxed(&group->handle)); /* GROUP7: a later life */
}

bool tw__group_retract(tw_service *service, struct tw__local *local, uint64_t tag, uint64_t entry)
{
	uint32_t slot = tw__entry_slot(entry), generation = tw__entry_generation(entry);
	if (!has_closed(tw__group_at(&service->groups, tag & TW__GROUP_INDEX_MASK), tag)) {
		tw__end_cancelled(service, local, slot, generation);
		return false;
	}
	uint64_t word = tw_load_acquire(&service->slots.words[slot]);
	while (tw__word_generation(word) == generation &&
	       (tw__word_waits(word) || tw__word_state(word) == TW__CANCEL_PENDING)) {
		/* GROUP9 */
		if (!tw__word_cas_seq_cst(&service->slots.words[slot], &word,
					  tw__word_next_free(word)))
			continue;
		tw__slot_put(&service->slots, &local->magazine, slot, generation + 1);
		return true;
	}
	return false;
}

void tw__cached_let_go(tw_service *service, struct tw__local *local, uint32_t n)
{
	TW_ASSERT(n < tw_load_relaxed(&local->cached.count));
	uint32_t ext = (uint32_t)tw_load_relaxed(tw__cached_at(&local->cached, n));
	/* before it is none of the cached (count_cached) */
	tw__group_leave_slowly(service, NULL, ext, false);
	tw__cached_remove(&local->cached, n);
	tw__ext_put(&service->slots, &local->exts, ext);
}

void tw__cached_flush(tw_service *service, struct tw__local *local, uint32_t group)
{
	for (uint32_t n = tw_load_relaxed(&local->cached.count); n-- > 0;)
		if (!group ||
		    tw__cached_group(tw_load_relaxed(tw__cached_at(&local->cached, n))) == group)
			tw__cached_let_go(service, local, n);
}
