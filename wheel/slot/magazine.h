/*
 * A thread's free slots, in a ring, first in first out, as entries with the generation that the
 * free word says.
 *
 * A cancel puts one slot in and a schedule takes one out, and both are counted for statistics. So
 * one store does for both: the ring's positions are these counts, and a shift for each slot that
 * comes or goes for another reason.
 *
 *     the first slot is at position    scheduled + head_shift
 *     the next one comes to position   cancelled + tail_shift
 *
 * The hot paths compare their count with a limit, which may be too low, never too high:
 *     schedule_limit  the value of `scheduled` at which the ring may be empty
 *     cancel_limit    the value of `cancelled` at which it may be full, or the cancel has to look
 *                     for the driver (TW__CANCELS_PER_WAKE)
 */
#ifndef TW_WHEEL_MAGAZINE_H
#define TW_WHEEL_MAGAZINE_H

#include "wheel/slot/slots.h"

enum { TW__MAGAZINE_MIN = 128, TW__MAGAZINE_MAX = 256 };

/* Cancels between two looks whether a driver that sleeps is to sweep. */
enum { TW__CANCELS_PER_WAKE = 512 };

struct tw__magazine {
	uint64_t entries[TW__MAGAZINE_MAX];
	_Atomic uint64_t scheduled; /* by this thread; read by statistics */
	_Atomic uint64_t cancelled; /* likewise */
	uint64_t head_shift, tail_shift;
	uint64_t schedule_limit, cancel_limit;
	uint32_t capacity; /* at most TW__MAGAZINE_MAX; grows with use */
};

void tw__magazine_init(struct tw__slots *slots, struct tw__magazine *magazine);

void tw__magazine_flush(struct tw__slots *slots, struct tw__magazine *magazine);

/* Sees to it that there is a slot. 0, -EAGAIN, -ENOMEM, as tw__slots_take. */
int tw__magazine_look(struct tw__slots *slots, struct tw__magazine *magazine);

/* Makes room for a slot, and sets the limits anew. */
void tw__magazine_make_room(struct tw__slots *slots, struct tw__magazine *magazine);

/* Fetched before they are taken: where there are many timers, slots have left the cache. */
enum { TW__SLOT_FETCH_AHEAD = 4 };

static inline void tw__slot_fetch(const struct tw__slots *slots, uint32_t slot)
{
	tw_prefetch_write(&slots->records[slot]);
	tw_prefetch_write((const void *)&slots->words[slot]);
}

static inline uint64_t tw__magazine_head(const struct tw__magazine *magazine)
{
	return tw_load_relaxed(&magazine->scheduled) + magazine->head_shift;
}

static inline uint64_t tw__magazine_tail(const struct tw__magazine *magazine)
{
	return tw_load_relaxed(&magazine->cancelled) + magazine->tail_shift;
}

static inline uint32_t tw__magazine_count(const struct tw__magazine *magazine)
{
	return (uint32_t)(tw__magazine_tail(magazine) - tw__magazine_head(magazine));
}

static inline bool tw__magazine_is_full(const struct tw__magazine *magazine)
{
	return tw__magazine_count(magazine) == magazine->capacity;
}

/* The n-th slot from the first. */
static inline uint64_t tw__magazine_peek(const struct tw__magazine *magazine, uint32_t n)
{
	return magazine->entries[(tw__magazine_head(magazine) + n) % TW__MAGAZINE_MAX];
}

static inline bool tw__magazine_has_one(const struct tw__magazine *magazine)
{
	return tw_load_relaxed(&magazine->scheduled) != magazine->schedule_limit;
}

/* Takes the first slot, and counts a schedule. */
static inline uint64_t tw__magazine_schedule(const struct tw__slots *slots,
					     struct tw__magazine *magazine)
{
	TW_ASSERT(tw__magazine_has_one(magazine) && tw__magazine_count(magazine) > 0);
	uint64_t scheduled = tw_load_relaxed(&magazine->scheduled),
		 head = scheduled + magazine->head_shift;
	uint64_t entry = magazine->entries[head % TW__MAGAZINE_MAX];
	tw__slot_fetch(
	    slots, (uint32_t)magazine->entries[(head + TW__SLOT_FETCH_AHEAD) % TW__MAGAZINE_MAX]);
	tw_store_relaxed(&magazine->scheduled, scheduled + 1);
	return entry;
}

static inline bool tw__magazine_has_room(const struct tw__magazine *magazine)
{
	return tw_load_relaxed(&magazine->cancelled) != magazine->cancel_limit;
}

/* Puts a slot in, and counts a cancel. */
static inline void tw__magazine_cancel(struct tw__magazine *magazine, uint64_t entry)
{
	TW_ASSERT(tw__magazine_has_room(magazine) && !tw__magazine_is_full(magazine));
	uint64_t cancelled = tw_load_relaxed(&magazine->cancelled);
	magazine->entries[(cancelled + magazine->tail_shift) % TW__MAGAZINE_MAX] = entry;
	tw_store_relaxed(&magazine->cancelled, cancelled + 1);
}

static inline void tw__magazine_take(struct tw__magazine *magazine, uint32_t n)
{
	TW_ASSERT(n <= tw__magazine_count(magazine));
	magazine->head_shift += n;
	magazine->schedule_limit =
	    tw_load_relaxed(&magazine->scheduled) + tw__magazine_count(magazine);
}

/* The caller sets the limits. */
static inline void tw__magazine_append(struct tw__magazine *magazine, uint64_t entry)
{
	magazine->entries[tw__magazine_tail(magazine) % TW__MAGAZINE_MAX] = entry;
	magazine->tail_shift++;
}

/* Counts schedules (below 0: takes them back) and cancels of slots that take and append moved. */
static inline void tw__magazine_count_scheduled(struct tw__magazine *magazine, int64_t n)
{
	magazine->head_shift -= (uint64_t)n;
	magazine->schedule_limit += (uint64_t)n;
	tw_bump(&magazine->scheduled, (uint64_t)n);
}

static inline void tw__magazine_count_cancelled(struct tw__magazine *magazine)
{
	magazine->tail_shift--;
	magazine->cancel_limit += !tw__magazine_has_room(magazine);
	tw_bump(&magazine->cancelled, 1);
}

/* tw__slot_put where it takes more than a store. */
void tw__slot_put_slowly(struct tw__slots *slots, struct tw__magazine *magazine, uint32_t slot,
			 uint32_t generation);

/* Gives a slot back, uncounted; `generation`: of its free word. magazine may be NULL. */
static inline void tw__slot_put(struct tw__slots *slots, struct tw__magazine *magazine,
				uint32_t slot, uint32_t generation)
{
	tw__debug_poison(slots, slot);
	if (tw_unlikely(generation == TW__LAST_GENERATION || !magazine ||
			!tw__magazine_has_room(magazine))) {
		tw__slot_put_slowly(slots, magazine, slot, generation);
		return;
	}
	tw__magazine_append(magazine, tw__entry_make(slot, generation));
	magazine->cancel_limit--;
}

#endif
