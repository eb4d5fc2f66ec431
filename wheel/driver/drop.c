/*
 * Dropping: what TW_REFUSED_DROP makes of timers whose executor has refused them.
 *
 * A timer without a release ends immediately. A timer with a release stays armed and is marked
 * under its option lock (`condemned`), since the tick thread must not call the release. Its entry
 * moves to the outbox's `owed` list and is offered again. The thread that claims it calls the
 * release instead of the callback. A reset removes the mark. At close, the closer ends it. The
 * driver only tries the lock: if the lock is taken, the timer stays as it is until the next tick.
 *
 * An entry of a cancelled group (slot 0, group.h) is kept and offered again too, since settling
 * calls releases.
 */
#include <string.h>

#include "wheel/driver/poll.h"
#include "wheel/run/run.h"
#include "wheel/timer/end.h"

/*
 * Marks an armed timer that has a release. False: it has none, is armed no more, or differs from
 * *word, which is then updated.
 */
static bool condemn(tw_service *service, uint32_t slot, uint64_t *word)
{
	uint64_t seen = *word;
	pthread_mutex_t *lock = tw__option_trylock(&service->slots, slot);
	if (!lock)
		return true;
	uint32_t traits = tw__traits_of(&service->slots, slot);
	*word = tw_load_acquire(&service->slots.words[slot]);
	bool condemned = *word == seen && traits & TW__TRAIT_RELEASE;
	if (condemned)
		tw__option_of(&service->slots, slot)->condemned = true; /* it has TW__TRAIT_MOVES too (schedule.c) */
	pthread_mutex_unlock(lock);
	if (condemned)
		tw_store_relaxed(&service->ever.condemns, true); /* a hint to close, which looks again and again */
	return condemned;
}

static bool is_due(const tw_service *service, uint64_t word, uint64_t batch_tick)
{
	uint64_t cursor = tw_load_relaxed(&service->gate.cursor);
	return tw__forced(service) || (!(word & TW__FAR) && tw__deadline_in_batch(word, batch_tick, cursor) <= cursor);
}

/* True: its entry is still wanted. */
static bool drop_entry(tw_service *service, struct tw__local *local, uint64_t entry, uint64_t tick)
{
	uint32_t slot = tw__entry_slot(entry);
	if (!slot) { /* a group's members are settled, not dropped */
		tw_store_relaxed(&service->ever.condemns, true);
		return true;
	}
	uint64_t word = tw_load_acquire(&service->slots.words[slot]);
	for (;;) {
		if ((word ^ entry) >> TW__GENERATION_SHIFT || !tw__word_armed(word))
			return false;
		uint64_t seen = word;
		if (!is_due(service, word, tick)) {
			tw__refile(service, entry); /* moved to later meanwhile */
			return false;
		}
		if (word & TW__OPTION && condemn(service, slot, &word))
			return true;
		if (word == seen && tw__drop(service, local, slot, &word))
			return false;
	}
}

void tw__outbox_drop(tw_service *service, struct tw__local *local, struct tw__outbox *box, struct tw__chunk *chunk)
{
	unsigned kept = 0;
	struct tw__chunk *last = box->owed.chunks.last;
	for (unsigned i = 0; i < chunk->count; i++)
		if (drop_entry(service, local, chunk->entries[i], chunk->tick))
			chunk->entries[kept++] = chunk->entries[i];
	chunk->count = kept;
	if (last && last->count + kept <= TW__CHUNK_ENTRIES) {
		memcpy(last->entries + last->count, chunk->entries, kept * sizeof *chunk->entries);
		last->count += kept;
		chunk->count = 0;
	}
	if (chunk->count)
		tw__chunk_append(&box->owed.chunks, chunk);
	else
		tw__chunk_put(&service->driver->wheel, chunk);
}
