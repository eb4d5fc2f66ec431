/*
 * Groups that wait to be reaped become entries of the service's own outbox. The rules:
 * wheel/group/group.h.
 */
#include "wheel/driver/reap_collect.h"

#include "wheel/driver/driver.h"
#include "wheel/run/inline.h"

/* where the driver itself reaps: this many pieces make no long tick */
enum { GROUPS_A_POLL = 4 };

/* A chunk of the own outbox with room for one more entry. NULL: chunks are short. */
static struct tw__chunk *room_in_own(tw_service *service)
{
	struct tw__chunk *last = service->driver->outboxes.own.runs.chunks.last;
	if (last && last->count < TW__CHUNK_ENTRIES)
		return last;
	if (tw__short_of_chunks(service))
		return NULL;
	last = tw__chunk_get(&service->driver->wheel);
	last->tick = service->driver->wheel.next - 1;
	last->holder_count = 0;
	tw__chunk_append(&service->driver->outboxes.own.runs.chunks, last);
	return last;
}

void tw__groups_collect(tw_service *service)
{
	TW_ASSERT_DRIVER(service);
	struct tw__groups *groups = &service->groups;
	struct tw__chunk *chunk;
	int most = service->executor == &tw__inline_executor ? GROUPS_A_POLL : TW__CHUNK_ENTRIES;
	/* one that is missed here is seen before sleeping */
	if (!groups->waiting && tw_load_relaxed(&groups->stack))
		groups->waiting = tw_exchange_acq_rel(&groups->stack, 0); /* GROUP5 */
	for (int n = 0; groups->waiting && n < most && (chunk = room_in_own(service)); n++) {
		uint32_t index = groups->waiting;
		groups->waiting =
		    /* first: once handed over it may be pushed again */
		    tw__group_at(groups, index)->next;
		chunk->entries[chunk->count++] = tw__entry_make(0, index);
	}
}
