/*
 * Groups on their way to be reaped: any thread pushes them, the driver takes them all. The rules:
 * wheel/group/group.h.
 */
#include "wheel/timer/reap_queue.h"

static void reap_queue_push(tw_service *service, struct tw__group *group, uint32_t index)
{
	TW_ASSERT(index > 0 && tw_load_relaxed(&group->queued) == 1);
	uint32_t first = tw_load_relaxed(&service->groups.stack);
	do {
		group->next = first;
	} while (!tw_cas_seq_cst(&service->groups.stack, &first, index)); /* GROUP5 */
}

void tw__group_offer_again(tw_service *service, uint32_t index)
{
	/* `queued` is still raised, in our name */
	reap_queue_push(service, tw__group_at(&service->groups, index), index);
	if (tw_load_seq_cst(&service->gate.word) & TW__GATE_PARKED) /* GROUP5 */
		tw__gate_ring(&service->gate);
}

void tw__group_reap_soon(tw_service *service, struct tw__group *group, uint32_t index)
{
	if (!tw_exchange_acq_rel(&group->queued, 1)) /* GROUP4; else it is under way already */
		tw__group_offer_again(service, index);
}

void tw__group_reap_on(tw_service *service, struct tw__group *group, uint32_t index)
{
	if (tw_exchange_acq_rel(&group->queued, 1)) /* GROUP4 */
		return;
	reap_queue_push(service, group, index);
	/* also where it ticks: it goes on immediately, not a piece a tick */
	tw__gate_ring(&service->gate);
}
