/*
 * The turning side of the wheel: running slots, moving coarse slots nearer, finding the next one.
 */
#include <limits.h>
#include <string.h>

#include "bench/list_wheel.h"

#define NO_SLOT UINT_MAX

void list_wheel_init(struct list_wheel *wheel, uint64_t now_tick)
{
	memset(wheel, 0, sizeof *wheel);
	wheel->cursor = now_tick;
}

/* Moves a slot's list to *list, so that callbacks may add to the slot and remove from the list. */
static void take_slot(struct list_wheel *wheel, unsigned slot, struct wheel_timer **list)
{
	*list = wheel->slots[slot];
	wheel->slots[slot] = NULL;
	wheel->occupied[slot / 64] &= ~(UINT64_C(1) << slot % 64);
	if (*list)
		(*list)->link = list;
}

static struct wheel_timer *pop(struct wheel_timer **list)
{
	struct wheel_timer *timer = *list;
	if (timer) {
		__builtin_prefetch(timer->next, 1);
		list_wheel_remove(timer);
	}
	return timer;
}

static void run_slot(struct list_wheel *wheel, unsigned slot)
{
	struct wheel_timer *list;
	take_slot(wheel, slot, &list);
	for (struct wheel_timer *timer; (timer = pop(&list));)
		if (wheel->due)
			due_add(wheel->due, timer->fn, timer->arg);
		else
			timer->fn(timer->arg);
}

static void move_nearer(struct list_wheel *wheel, unsigned slot)
{
	struct wheel_timer *list;
	take_slot(wheel, slot, &list);
	for (struct wheel_timer *timer; (timer = pop(&list));)
		list_wheel_file(wheel, timer);
}

/*
 * The cursor has come to the start of a fine round: each coarse slot that begins here is moved
 * nearer.
 */
static void begin_round(struct list_wheel *wheel)
{
	for (unsigned level = 1; level < WHEEL_LEVELS; level++) {
		uint64_t round = wheel->cursor >> wheel_level_shift(level);
		unsigned index = (unsigned)round & ((1u << wheel_level_bits(level)) - 1);
		move_nearer(wheel, wheel_level_start(level) + index);
		if (index != 0)
			return;
	}
}

/* The first slot from `from` to `to` (excluded) whose bit is set, by words; NO_SLOT: none. */
static unsigned next_set(const struct list_wheel *wheel, unsigned from, unsigned to)
{
	for (unsigned slot = from; slot < to; slot = (slot / 64 + 1) * 64) {
		uint64_t word = wheel->occupied[slot / 64] >> slot % 64;
		if (!word)
			continue;
		slot += (unsigned)__builtin_ctzll(word);
		return slot < to ? slot : NO_SLOT;
	}
	return NO_SLOT;
}

void list_wheel_turn(struct list_wheel *wheel, uint64_t now_tick)
{
	const uint64_t round = UINT64_C(1) << WHEEL_FINE_BITS;
	while (wheel->cursor <= now_tick) {
		uint64_t start = wheel->cursor & ~(round - 1);
		uint64_t stop = now_tick - start < round ? now_tick + 1 : start + round;
		unsigned slot =
		    next_set(wheel, (unsigned)(wheel->cursor - start), (unsigned)(stop - start));
		/* Past the tick before its callbacks run: what they add goes to a later one. */
		wheel->cursor = slot == NO_SLOT ? stop : start + slot + 1;
		if (slot != NO_SLOT)
			run_slot(wheel, slot);
		if (wheel->cursor == start + round)
			begin_round(wheel);
	}
}

/* next_set, but looks whether there is something in the slot, and clears the bit if not. */
static unsigned next_filled(struct list_wheel *wheel, unsigned from, unsigned to)
{
	for (unsigned slot = from; (slot = next_set(wheel, slot, to)) != NO_SLOT; slot++) {
		if (wheel->slots[slot])
			return slot;
		wheel->occupied[slot / 64] &= ~(UINT64_C(1) << slot % 64);
	}
	return NO_SLOT;
}

/*
 * The start of the first filled slot of a level, walking round once from `from` (in the level's
 * units).
 */
static uint64_t next_in_level(struct list_wheel *wheel, unsigned level, uint64_t from)
{
	unsigned base = wheel_level_start(level), count = 1u << wheel_level_bits(level);
	unsigned first = (unsigned)from & (count - 1);
	unsigned slot = next_filled(wheel, base + first, base + count);
	uint64_t ahead = slot - base - first;
	if (slot == NO_SLOT) {
		slot = next_filled(wheel, base, base + first);
		if (slot == NO_SLOT)
			return UINT64_MAX;
		ahead = slot - base + count - first;
	}
	return (from + ahead) << wheel_level_shift(level);
}

uint64_t list_wheel_next_tick(struct list_wheel *wheel)
{
	uint64_t next = next_in_level(wheel, 0, wheel->cursor);
	for (unsigned level = 1; level < WHEEL_LEVELS; level++) {
		uint64_t coarse =
		    next_in_level(wheel, level, (wheel->cursor >> wheel_level_shift(level)) + 1);
		if (coarse < next)
			next = coarse;
	}
	return next;
}
