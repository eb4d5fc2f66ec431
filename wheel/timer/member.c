/* What the leaving of a member may bring about. The rules: wheel/group/group.h. */
#include "wheel/timer/member.h"

#include "wheel/core/wake.h"

void tw__group_left_slowly(tw_service *service, struct tw__group *group, uint32_t index,
			   uint32_t serial)
{
	TW_ASSERT_TINY_LOCKED(&group->lock);
	bool tells = group->waiters && !tw__group_has_upto(group, service->slots.links, serial);
	bool completes = !group->members && group->completion == TW__COMPLETION_GIVEN;
	if (completes)
		group->completion = TW__COMPLETION_DUE;
	bool settled =
	    group->completion == TW__COMPLETION_NONE || group->completion == TW__COMPLETION_OVER;
	bool vacates = tw_load_relaxed(&group->dead) && !group->members && settled;
	if (vacates) { /* for the index's next group; a walk for this one may be about to look */
		tw_store_relaxed(&group->handle,
				 tw_load_relaxed(&group->handle) + TW__GROUP_INDEX_MASK + 1);
		group->serial++;
		group->completion = TW__COMPLETION_NONE;
	}
	struct tw__work *work = completes ? &service->groups.at_end[index].work : NULL;
	tw__group_unlock(group);
	if (tells)
		tw__ring_finish(service); /* GROUP2 */
	if (vacates) {
		tw__tiny_lock(&service->groups.lock);
		group->next_free = service->groups.free;
		service->groups.free = index;
		tw__tiny_unlock(&service->groups.lock);
	}
	if (completes)
		tw__work_push_and_ring(service, work);
}
