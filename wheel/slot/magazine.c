/*
 * Magazines, when they are empty or full: slots come from the depot, and go back to it. The usual
 * steps: magazine.h.
 */
#include "wheel/slot/magazine.h"

#include "wheel/slot/slots_purge.h"

static void set_limits(struct tw__magazine *magazine)
{
	uint64_t cancelled = tw_load_relaxed(&magazine->cancelled),
		 wake = cancelled | (TW__CANCELS_PER_WAKE - 1);
	uint32_t count = tw__magazine_count(magazine), room = magazine->capacity - count;
	magazine->schedule_limit = tw_load_relaxed(&magazine->scheduled) + count;
	magazine->cancel_limit = cancelled + room < wake ? cancelled + room : wake;
}

void tw__magazine_init(struct tw__slots *slots, struct tw__magazine *magazine)
{
	*magazine = (struct tw__magazine){.capacity = TW__MAGAZINE_MIN};
	set_limits(magazine);
	tw_add_relaxed(&slots->threads, 1);
}

/* A free slot whose generation only its word knows. */
static void load(struct tw__slots *slots, struct tw__magazine *magazine, uint32_t slot)
{
	uint64_t word = tw_load_relaxed(&slots->words[slot]);
	TW_ASSERT(tw__word_state(word) == TW__FREE);
	tw__magazine_append(magazine, tw__entry_make(slot, tw__word_generation(word)));
}

/* False: there is none to be had. */
static bool refill(struct tw__slots *slots, struct tw__magazine *magazine)
{
	uint32_t n = 0, slot;
	uint32_t purged[TW__MAGAZINE_MAX / 2], n_purged = 0;
	pthread_mutex_lock(&slots->lock); /* planted: depot_unlocked */
	slot = tw__chain_pop(slots, &n);
	bool fresh = !slot;
	if (fresh)
		n_purged = tw__slots_purge_take(slots, magazine->capacity / 2, purged);
	if (fresh && n_purged == 0)
		n = tw__slots_take_fresh(slots, magazine->capacity / 2, &slot);
	pthread_mutex_unlock(&slots->lock);
	for (uint32_t i = 0; i < n; i++) {
		load(slots, magazine, slot);
		slot = fresh ? slot + 1 : slots->records[slot].link;
	}
	for (uint32_t i = 0; i < n_purged; i++)
		load(slots, magazine, purged[i]);
	n += n_purged;
	do {
		if (magazine->capacity < TW__MAGAZINE_MAX)
			magazine->capacity *= 2;
	} while (magazine->capacity < n);
	return n > 0;
}

bool tw__magazine_look(struct tw__slots *slots, struct tw__magazine *magazine)
{
	bool has_one = tw__magazine_count(magazine) || refill(slots, magazine);
	set_limits(magazine);
	return has_one;
}

/* Takes the n oldest slots out as a chain. */
static void unload(struct tw__slots *slots, struct tw__magazine *magazine, uint32_t n)
{
	uint32_t head = 0;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t slot = tw__entry_slot(tw__magazine_peek(magazine, i));
		slots->records[slot].link = head;
		head = slot;
	}
	tw__magazine_take(magazine, n);
	tw__chain_push(slots, head, n);
}

void tw__magazine_make_room(struct tw__slots *slots, struct tw__magazine *magazine)
{
	if (tw__magazine_is_full(magazine) && magazine->capacity < TW__MAGAZINE_MAX)
		magazine->capacity *= 2;
	else if (tw__magazine_is_full(magazine))
		unload(slots, magazine, magazine->capacity / 2);
	set_limits(magazine);
}

void tw__slot_put_slowly(struct tw__slots *slots, struct tw__magazine *magazine, uint32_t slot,
			 uint32_t generation)
{
	if (generation == TW__LAST_GENERATION) {
		tw_add_relaxed(&slots->retired, 1);
		return;
	}
	if (!magazine) {
		tw__chain_push(slots, slot, 1);
		return;
	}
	tw__magazine_make_room(slots, magazine);
	tw__magazine_append(magazine, tw__entry_make(slot, generation));
	set_limits(magazine);
}

void tw__magazine_flush(struct tw__slots *slots, struct tw__magazine *magazine)
{
	if (tw__magazine_count(magazine))
		unload(slots, magazine, tw__magazine_count(magazine));
	set_limits(magazine);
}
