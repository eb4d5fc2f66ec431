/*
 * A thread's free slots, in a ring, first in first out, as entries with the generation that the
 * free word says; and how many timers the thread has scheduled and cancelled.
 */
#ifndef TW_WHEEL_MAGAZINE_H
#define TW_WHEEL_MAGAZINE_H

#include "wheel/slot/slots.h"

/* Fewer than FEW slots would be used again too soon: more are taken before. */
enum { TW__MAGAZINE_FEW = 16, TW__MAGAZINE_MIN = 128, TW__MAGAZINE_MAX = 256 };

struct tw__magazine {
	uint64_t entries[TW__MAGAZINE_MAX];
	uint32_t head, tail;        /* positions in the ring */
	uint32_t capacity;          /* at most TW__MAGAZINE_MAX; grows with use */
	_Atomic uint64_t scheduled; /* by this thread; read by statistics */
	_Atomic uint64_t cancelled; /* likewise */
};

void tw__magazine_init(struct tw__slots *slots, struct tw__magazine *magazine);

void tw__magazine_flush(struct tw__slots *slots, struct tw__magazine *magazine);

/* Sees to it that there is a slot. 0, -EAGAIN, -ENOMEM, as tw__slots_take. */
int tw__magazine_refill(struct tw__slots *slots, struct tw__magazine *magazine);

/* Fetched before they are taken: where there are many timers, slots have left the cache. */
enum { TW__SLOT_FETCH_AHEAD = 4 };

static inline void tw__slot_fetch(const struct tw__slots *slots, uint32_t slot)
{
	tw_prefetch_write(&slots->records[slot]);
	tw_prefetch_write((const void *)&slots->words[slot]);
}

static inline uint32_t tw__magazine_count(const struct tw__magazine *magazine)
{
	return magazine->tail - magazine->head;
}

/* Else tw__magazine_refill comes first. */
static inline bool tw__magazine_has_some(const struct tw__magazine *magazine)
{
	return tw__magazine_count(magazine) >= TW__MAGAZINE_FEW;
}

static inline bool tw__magazine_has_room(const struct tw__magazine *magazine)
{
	return tw__magazine_count(magazine) != magazine->capacity;
}

/* The n-th slot from the first. */
static inline uint64_t tw__magazine_peek(const struct tw__magazine *magazine, uint32_t n)
{
	return magazine->entries[(magazine->head + n) % TW__MAGAZINE_MAX];
}

/* Takes the first slot, and counts a schedule. */
static inline uint64_t tw__magazine_schedule(const struct tw__slots *slots,
					     struct tw__magazine *magazine)
{
	TW_ASSERT(tw__magazine_count(magazine) > 0);
	uint64_t entry = tw__magazine_peek(magazine, 0);
	tw__slot_fetch(slots, (uint32_t)tw__magazine_peek(magazine, TW__SLOT_FETCH_AHEAD));
	magazine->head++;
	tw_bump(&magazine->scheduled, 1);
	return entry;
}

static inline void tw__magazine_put(struct tw__magazine *magazine, uint64_t entry)
{
	TW_ASSERT(tw__magazine_has_room(magazine));
	magazine->entries[magazine->tail++ % TW__MAGAZINE_MAX] = entry;
}

/* tw__slot_put where it takes more than a store. */
void tw__slot_put_slowly(struct tw__slots *slots, struct tw__magazine *magazine, uint32_t slot,
			 uint32_t generation);

/* Gives a slot back; `generation`: of its free word. magazine may be NULL. */
static inline __attribute__((always_inline)) void tw__slot_put(struct tw__slots *slots,
							       struct tw__magazine *magazine,
							       uint32_t slot, uint32_t generation)
{
	tw__debug_poison(slots, slot);
	if (tw_unlikely(generation == TW__LAST_GENERATION || !magazine ||
			!tw__magazine_has_room(magazine)))
		tw__slot_put_slowly(slots, magazine, slot, generation);
	else
		tw__magazine_put(magazine, tw__entry_make(slot, generation));
}

#endif
