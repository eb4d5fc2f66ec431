/*
 * Magazines, when they are empty or full: slots come from the depot, and go back to it. The usual
 * steps: magazine.h.
 */
#include "wheel/slot/magazine.h"

enum { FEW_SLOTS = 16 };

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

static int magazine_refill(struct tw__slots *slots, struct tw__magazine *magazine)
{
	uint32_t out[TW__MAGAZINE_MAX / 2];
	int n = tw__slots_take(slots, magazine->capacity / 2, out);
	for (int i = 0; i < n; i++)
		tw__magazine_append(magazine, tw__slot_entry(slots, out[i]));
	if (magazine->capacity < TW__MAGAZINE_MAX)
		magazine->capacity *= 2;
	return n;
}

/* More come before the last one has gone, so that few schedules have to look. */
int tw__magazine_look(struct tw__slots *slots, struct tw__magazine *magazine)
{
	int r = tw__magazine_count(magazine) < FEW_SLOTS ? magazine_refill(slots, magazine) : 0;
	set_limits(magazine);
	return tw__magazine_count(magazine) ? 0 : r;
}

/* The oldest n. */
static void unload(struct tw__slots *slots, struct tw__magazine *magazine, uint32_t n)
{
	uint32_t out[TW__MAGAZINE_MAX];
	for (uint32_t i = 0; i < n; i++)
		out[i] = tw__entry_slot(tw__magazine_peek(magazine, i));
	tw__magazine_take(magazine, n);
	tw__slots_put(slots, out, n);
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
		tw__slots_put(slots, &slot, 1);
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
