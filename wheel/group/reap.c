/*
 * The reap: ends the members of a cancelled group that no thread has met, in pieces, on the
 * executor. See group.h.
 *
 * The thread that wins the compare-and-swap of a member's word ends the member: a reap, a claim
 * that finds it stale, a cancel_wait, close. All do the same, and the member counts once.
 */
#include "wheel/group/reap.h"

#include "wheel/group/completion.h"
#include "wheel/timer/end.h"
#include "wheel/timer/member.h"
#include "wheel/timer/reap_queue.h"

enum {
	PIECE = 256, /* members ended in one run */
	AT_ONCE = 16 /* of these found under one hold of the lock */
};

/* ------------------------------------------------------------------- a piece */

/* Whether the member waits to be ended. The group's lock is held. */
static bool is_to_be_reaped(tw_service *service, uint64_t entry)
{
	uint64_t word = tw_load_acquire(&service->slots.words[tw__entry_slot(entry)]);
	return !((word ^ entry) >> TW__GENERATION_SHIFT) &&
	       (tw__word_waits(word) || tw__word_state(word) == TW__CANCEL_PENDING);
}

/*
 * Finds the first members that are to be reaped. Members before them are running, or other threads
 * are ending them: at most one for each such thread. Each member stays any thread's to end until
 * its turn: the release of one before it may take long, or wait for its end.
 */
static unsigned find_some(tw_service *service, struct tw__group *group, uint64_t *found)
{
	const struct tw__ext *exts = service->slots.exts;
	unsigned n = 0;
	tw__group_lock(group); /* GROUP2, GROUP8 */
	for (uint32_t i = group->first; i && n < AT_ONCE; i = exts[i].next_member) {
		if (!tw__tag_is_stale(&service->groups, tw_load_relaxed(&exts[i].tag)))
			break;
		uint64_t entry = tw_load_acquire(&exts[i].member); /* GROUP8: its tag is no older */
		if (is_to_be_reaped(service, entry))
			found[n++] = entry;
	}
	tw__group_unlock(group);
	return n;
}

bool tw__group_reap(tw_service *service, struct tw__local *local, struct tw__group *group)
{
	uint64_t found[AT_ONCE];
	for (unsigned done = 0; done < PIECE; done += AT_ONCE) {
		unsigned n = find_some(service, group, found);
		for (unsigned i = 0; i < n; i++)
			tw__end_cancelled(service, local, tw__entry_slot(found[i]),
					  tw__entry_generation(found[i]));
		if (n < AT_ONCE)
			return false;
	}
	return true;
}

/*
 * If membarrier is refused now (it was granted at creation), the look may miss a member that its
 * bias owner is arming. It does not run: its claim comes later by far, and finds it stale.
 */
void tw__group_make_certain(tw_service *service, struct tw__group *group)
{
	/* The lock: a thread that becomes the bias owner after this has seen the cancel. */
	tw__group_lock(group);
	struct tw__local *bias_owner = tw_load_relaxed(&group->bias_owner);
	tw__group_unlock(group);
	if (bias_owner && bias_owner != tw__local_at_hand(service))
		tw__gate_barrier(&service->gate); /* GROUP8 */
}

/*
 * A group that has been reaped, if it is destroyed: its bias owner caches nothing of it any more. A
 * thread that arms a record in this moment is seen, or sees that the group is dead (GROUP8) and
 * ends its timer itself, by the record alone. Meanwhile the index may have gone to another group,
 * whose list is not this one.
 */
static void throw_out_if_dead(tw_service *service, struct tw__group *group, uint32_t index)
{
	struct tw__slots *slots = &service->slots;
	uint64_t word = tw_load_acquire(&group->word);
	if (!(word & TW__GROUP_DEAD))
		return;
	tw__group_make_certain(service, group); /* after that look, whatever was passed before */
	tw__group_lock(group);
	/* births hold the lock */
	if ((tw_load_relaxed(&group->word) ^ word) >> TW__GROUP_INDEX_BITS) {
		tw__group_unlock(group);
		return;
	}
	for (uint32_t i = group->first, next; i; i = next) {
		next = slots->exts[i].next_member;
		if (tw__member_is_over(slots, &slots->exts[i]))
			tw__member_unlink(group, slots, &slots->exts[i]);
	}
	tw__group_unlock_and_vacate(&service->groups, group, index);
}

void tw__group_reap_entry(tw_service *service, struct tw__local *local, uint32_t index)
{
	struct tw__group *group = tw__group_at(&service->groups, index);
	tw_exchange_acq_rel(&group->queued, 0); /* GROUP4 */
	/* GROUP10 */
	bool completes = tw_load_relaxed(&group->completion) == TW__COMPLETION_PENDING;
	if (tw_exchange_acq_rel(&group->remote, false) || tw_unlikely(completes))
		tw__group_make_certain(service, group); /* GROUP8 */
	if (!tw__group_reap(service, local, group)) {
		throw_out_if_dead(service, group, index);
		/* one that came later has queued the group again (GROUP4) */
		if (tw_unlikely(completes))
			tw__group_complete(service, group, index);
		return;
	}
	tw__group_reap_on(service, group, index);
}
