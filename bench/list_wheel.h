/*
 * A bare intrusive timing wheel (Varghese and Lauck, 1987), the way a careful C programmer would
 * write it for one thread: hierarchical, 4096 slots of one tick and three coarser levels of 256,
 * doubly linked lists threaded through the users' records, an occupancy bitmap per level, no lock,
 * no clock. Add and remove are O(1) and inline, so that this rival pays for no call either; a
 * record costs 40 bytes and nothing else.
 *
 * Not good at: being used by a second thread; and a coarse slot is moved nearer in one go, which
 * makes for a long turn every 4096 ticks.
 */
#ifndef BENCH_LIST_WHEEL_H
#define BENCH_LIST_WHEEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/candidate.h"
#include "bench/due.h"

enum {
	WHEEL_LEVELS = 4,
	WHEEL_FINE_BITS = 12,
	WHEEL_COARSE_BITS = 8,
	WHEEL_SLOTS = (1 << WHEEL_FINE_BITS) + (WHEEL_LEVELS - 1) * (1 << WHEEL_COARSE_BITS)
};

/* Lives with its user. */
struct wheel_timer {
	struct wheel_timer *next;
	struct wheel_timer **link; /* what points here; NULL: not pending */
	uint64_t due_tick;
	expiry_fn *fn;
	void *arg;
};

struct list_wheel {
	/* the next tick to run; ticks are counted from the clock's zero */
	uint64_t cursor;
	/* set by add, cleared when a slot is emptied or found empty */
	uint64_t occupied[WHEEL_SLOTS / 64];
	/* the levels one behind the other, the finest first */
	struct wheel_timer *slots[WHEEL_SLOTS];
	/* NULL: timers run in the turn; else they are added here */
	struct due_batch *due;
};

void list_wheel_init(struct list_wheel *wheel, uint64_t now_tick);

/* Runs all that is due up to and including now_tick. */
void list_wheel_turn(struct list_wheel *wheel, uint64_t now_tick);

/* The tick in which the next turn has something to do; UINT64_MAX: never. */
uint64_t list_wheel_next_tick(struct list_wheel *wheel);

static inline unsigned wheel_level_shift(unsigned level)
{
	return level == 0 ? 0 : WHEEL_FINE_BITS + (level - 1) * WHEEL_COARSE_BITS;
}

static inline unsigned wheel_level_bits(unsigned level)
{
	return level == 0 ? WHEEL_FINE_BITS : WHEEL_COARSE_BITS;
}

static inline unsigned wheel_level_start(unsigned level)
{
	return level == 0 ? 0 : (1u << WHEEL_FINE_BITS) + (level - 1) * (1u << WHEEL_COARSE_BITS);
}

static inline unsigned wheel_slot_in(unsigned level, uint64_t tick)
{
	unsigned index =
	    (unsigned)(tick >> wheel_level_shift(level)) & ((1u << wheel_level_bits(level)) - 1);
	return wheel_level_start(level) + index;
}

/*
 * Where a timer due at `tick` belongs. Beyond the coarsest level: into its farthest slot, to be
 * filed again there.
 */
static inline unsigned wheel_slot(const struct list_wheel *wheel, uint64_t tick)
{
	uint64_t ahead = tick - wheel->cursor;
	if (ahead < UINT64_C(1) << wheel_level_shift(1))
		return wheel_slot_in(0, tick);
	if (ahead < UINT64_C(1) << wheel_level_shift(2))
		return wheel_slot_in(1, tick);
	if (ahead < UINT64_C(1) << wheel_level_shift(3))
		return wheel_slot_in(2, tick);
	if (ahead < UINT64_C(1) << wheel_level_shift(4))
		return wheel_slot_in(3, tick);
	bool past = (int64_t)ahead < 0;
	return past ? wheel_slot_in(0, wheel->cursor) : wheel_slot_in(3, wheel->cursor - 1);
}

/* timer->due_tick is set. */
static inline void list_wheel_file(struct list_wheel *wheel, struct wheel_timer *timer)
{
	unsigned slot = wheel_slot(wheel, timer->due_tick);
	struct wheel_timer **head = &wheel->slots[slot];
	timer->next = *head;
	timer->link = head;
	if (timer->next)
		timer->next->link = &timer->next;
	*head = timer;
	wheel->occupied[slot / 64] |= UINT64_C(1) << slot % 64;
}

static inline void list_wheel_add(struct list_wheel *wheel, struct wheel_timer *timer,
				  uint64_t due_tick)
{
	timer->due_tick = due_tick;
	list_wheel_file(wheel, timer);
}

static inline void list_wheel_remove(struct wheel_timer *timer)
{
	*timer->link = timer->next;
	if (timer->next)
		timer->next->link = timer->link;
	timer->link = NULL;
}

static inline void list_wheel_retime(struct list_wheel *wheel, struct wheel_timer *timer,
				     uint64_t due_tick)
{
	if (timer->due_tick == due_tick)
		return;
	list_wheel_remove(timer);
	list_wheel_add(wheel, timer, due_tick);
}

#endif
