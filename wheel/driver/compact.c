/*
 * Compaction of outboxes: runs that wait for an executor need no more chunks than the timers that
 * live. Each call goes on where the last one stopped.
 */
#include "wheel/driver/compact.h"

#include <string.h>

#include "wheel/core/service.h"
#include "wheel/driver/driver.h"

/*
 * An entry whose timer is not armed is removed: if the timer is armed again, that brings another
 * entry.
 */
static void remove_ended(tw_service *service, struct tw__chunk *chunk)
{
	unsigned left = 0;
	uint64_t word;
	for (unsigned i = 0; i < chunk->count; i++) {
		tw__wheel_entry entry = chunk->entries[i];
		if (tw__entry_is_armed(&service->slots, entry, &word))
			chunk->entries[left++] = entry;
	}
	chunk->count = left;
}

/* Merges the chunk behind `before` (NULL: the first) into `before`, if it fits. */
static bool merge(tw_service *service, struct tw__chunk_list *list, struct tw__chunk *before,
		  struct tw__chunk *chunk)
{
	bool fits = before && before->holder_count == 0 &&
		    before->count + chunk->count <= TW__CHUNK_ENTRIES;
	if (chunk->holder_count > 0 || (chunk->count > 0 && !fits))
		return false;
	if (chunk->count > 0) {
		memcpy(before->entries + before->count, chunk->entries,
		       chunk->count * sizeof *chunk->entries);
		before->count += chunk->count;
	}
	if (before)
		before->next = chunk->next;
	else
		list->first = chunk->next;
	if (list->last == chunk)
		list->last = before;
	tw__chunk_put(&service->driver->wheel, chunk);
	return true;
}

unsigned tw__outbox_compact(tw_service *service, struct tw__outbox *box, unsigned n)
{
	TW_ASSERT_DRIVER(service);
	struct tw__chunk *before = box->compacted, *chunk;
	for (; n > 0 && (chunk = before ? before->next : box->runs.first); n--) {
		if (chunk->holder_count == 0)
			remove_ended(service, chunk);
		if (!merge(service, &box->runs, before, chunk))
			before = chunk;
	}
	box->compacted = before && before->next ? before : NULL;
	return n;
}
