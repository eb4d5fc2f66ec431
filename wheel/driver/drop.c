/*
 * TW_REFUSED_DROP: the driver ends the timers that an executor has refused, and calls their
 * releases. It reaps groups whose reap was refused.
 */
#include "wheel/driver/drop.h"

#include "wheel/driver/poll.h"
#include "wheel/group/reap.h"
#include "wheel/run/run.h"
#include "wheel/timer/end.h"

static bool is_due(const tw_service *service, uint64_t word, uint64_t batch_tick)
{
	uint64_t cursor = tw_load_relaxed(&service->gate.cursor);
	return tw__forced(service) || (!(word & TW__BEYOND_RANGE) &&
				       tw__deadline_in_batch(word, batch_tick, cursor) <= cursor);
}

static void drop_entry(tw_service *service, struct tw__local *local, uint64_t entry, uint64_t tick)
{
	uint32_t slot = tw__entry_slot(entry);
	if (!slot) {
		tw__group_reap_entry(service, local, (uint32_t)(entry >> TW__GENERATION_SHIFT));
		return;
	}
	uint64_t word;
	while (tw__entry_is_armed(&service->slots, entry, &word)) {
		if (!is_due(service, word, tick)) {
			tw__refile(service, entry); /* moved to later meanwhile */
			return;
		}
		if (tw__drop(service, local, slot, &word, NULL, NULL))
			return;
	}
}

void tw__outbox_drop(tw_service *service, struct tw__local *local, struct tw__chunk *chunk)
{
	TW_ASSERT_DRIVER(service);
	for (unsigned i = 0; i < chunk->count; i++)
		drop_entry(service, local, chunk->entries[i], chunk->tick);
	tw__chunk_put(&service->driver->wheel, chunk);
}
