/*
 * Deadlines of runs that wait for an executor.
 *
 * A due word keeps its deadline until its run is claimed, which may take as long as the executor likes, and only 25 bits of the
 * deadline are in the word. So whenever the cursor is to go on by TW__NEAR ticks or more since the last time, the driver first
 * walks through the chunks that wait in outboxes, or are out as batches, and makes each deadline that fell behind by more than
 * TW__NEAR the tick that is being turned to. A claim, or whoever else reads the word, then reads it as due. Before the cursor is
 * published such a word may read as due later: a claim gives it back, and a reset moves it with or without an entry, as both may
 * at any time.
 *
 * A chunk's entries do not change while it is a batch, so the driver may read them.
 */
#include "wheel/driver/driver.h"
#include "wheel/driver/resolve.h"

static void age_entry(tw_service *service, tw__wheel_entry entry, uint64_t target)
{
	uint32_t slot = tw__entry_slot(entry);
	if (!slot)
		return;
	uint64_t word = tw_load_acquire(&service->slots.words[slot]), next = service->driver->wheel.next;
	do {
		if (!tw__entry_is_current(entry, word) || tw__word_beyond(word))
			return;
		if (tw__word_deadline(word, next) + TW__NEAR >= target)
			return;
	} while (!tw__word_cas_acq_rel(&service->slots.words[slot], &word, tw__word_move(word, target)));
}

struct aging {
	tw_service *service;
	uint64_t target;
};

static void age_chunk(const struct aging *aging, const struct tw__chunk *chunk)
{
	for (unsigned i = 0; i < chunk->count; i++)
		age_entry(aging->service, chunk->entries[i], aging->target);
}

static void age_waiting(void *context, const struct tw__chunk *first)
{
	for (; first; first = first->next)
		age_chunk(context, first);
}

static void age_lent(const struct aging *aging)
{
	const tw_service *service = aging->service;
	for (size_t i = 0; i * 64 < service->driver->wheel.arena_used; i++)
		for (uint64_t bits = service->driver->memory.lent[i]; bits; bits &= bits - 1)
			age_chunk(aging, &service->driver->wheel.arena[i * 64 + (size_t)__builtin_ctzll(bits)]);
}

void tw__age(tw_service *service, uint64_t target)
{
	if (tw_likely(target < service->driver->aged_tick + TW__NEAR))
		return;
	struct aging aging = {service, target};
	tw__outbox_visit(service, age_waiting, &aging);
	if (service->driver->outboxes.lent)
		age_lent(&aging);
	service->driver->aged_tick = target;
}
