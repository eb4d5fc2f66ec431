/*
 * Slots by themselves: what magazines and depot hand out, and what happens when a generation is
 * used up.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tickwheel.h"
#include "wheel/core/service.h"

/* A free slot, as an entry. 0: there is none. */
static uint64_t take(struct tw__slots *slots, struct tw__magazine *magazine)
{
	if (!tw__magazine_has_some(magazine) && tw__magazine_refill(slots, magazine))
		return 0;
	return tw__magazine_schedule(slots, magazine);
}

/*
 * Slots come and go at random, through the magazine and past it: none is handed out twice, and the
 * magazine never holds more than its capacity.
 */
Test(timer_slots, no_slot_is_handed_out_twice)
{
	enum { MAX = 1000 };
	struct tw__slots slots;
	struct tw__magazine magazine;
	static uint64_t held[MAX];
	static bool out[MAX + 2 * TW__MAGAZINE_MAX + TW__SLOT_FIRST];
	uint64_t scheduled = 0, seed = 1;
	unsigned count = 0, wish = 0;
	cr_assert_eq(tw__slots_init(&slots, MAX, (struct tw__wheel_bytes){0}), 0);
	tw__magazine_init(&slots, &magazine);
	for (int i = 0; i < 1000000; i++) {
		seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		unsigned draw = (unsigned)(seed >> 33);
		if (i % 5000 == 0)
			wish = draw % MAX;
		bool takes = count <= wish && (count == 0 || draw % 4);
		if (i % 4999 == 0)
			tw__magazine_flush(&slots, &magazine);
		if (takes && count < MAX) {
			uint64_t entry = take(&slots, &magazine);
			cr_assert(entry && !out[tw__entry_slot(entry)], "slot %u twice",
				  tw__entry_slot(entry));
			cr_assert_eq(tw__entry_generation(entry),
				     tw__word_generation(
					 tw_load_relaxed(&slots.words[tw__entry_slot(entry)])));
			out[tw__entry_slot(entry)] = true;
			held[count++] = entry;
			scheduled++;
		} else if (count > 0) {
			uint64_t entry = held[draw % count];
			uint32_t slot = tw__entry_slot(entry),
				 generation = tw__entry_generation(entry) + 1;
			held[draw % count] = held[count - 1];
			count--;
			out[slot] = false;
			tw_store_relaxed(&slots.words[slot],
					 tw__word_make(generation, TW__FREE, 0));
			tw__slot_put(&slots, draw % 7 ? &magazine : NULL, slot, generation);
		}
		cr_assert_eq(tw_load_relaxed(&magazine.scheduled), scheduled);
		cr_assert_leq(tw__magazine_count(&magazine), magazine.capacity);
	}
	tw__slots_unmap(&slots);
}

static void count_run(void *arg)
{
	++*(unsigned *)arg;
}

/* A slot at its last generation: its timer works, and then the slot is never used again. */
Test(timer_slots, a_used_up_generation_retires_the_slot)
{
	tw_clock *clock;
	tw_service *service;
	tw_timer old, timer;
	unsigned runs = 0;
	cr_assert_eq(tw_clock_manual_create(&clock, 0), 0);
	struct tw_service_config config = {.size = sizeof config,
					   .drive = TW_DRIVE_MANUAL,
					   .clock = clock,
					   .executor = tw_executor_inline(),
					   .max_timers = 1};
	cr_assert_eq(tw_service_create(&service, &config), 0);
	cr_assert_eq(tw_schedule(service, 0, count_run, &runs, &old), 0);
	cr_assert_eq(tw_cancel(service, old), TW_CANCELLED);
	uint32_t end = tw_load_relaxed(&service->slots.depot.fresh);
	for (uint32_t slot = TW__SLOT_FIRST; slot < end; slot++)
		tw_store_relaxed(&service->slots.words[slot],
				 tw__word_make(TW__LAST_GENERATION - 1, TW__FREE, 0));
	/* it knows the old generations */
	tw__magazine_flush(&service->slots, &tw__local_of(service)->magazine);
	for (uint32_t slot = TW__SLOT_FIRST; slot < end; slot++) {
		cr_assert_eq(tw_schedule(service, 0, count_run, &runs, &timer), 0);
		cr_assert_eq(tw_service_advance(service, TW_NO_LIMIT), 1);
		cr_assert_eq(tw_cancel(service, timer), TW_GONE);
	}
	struct tw_service_stats stats = {.size = sizeof stats};
	tw_service_stats(service, &stats);
	cr_assert_eq(stats.retired_slots, end - TW__SLOT_FIRST);
	cr_assert_eq(runs, end - TW__SLOT_FIRST);
	cr_assert_eq(tw_schedule(service, 0, count_run, &runs, &timer), 0,
		     "retired slots count against max_timers");
	cr_assert((uint32_t)timer.id >= end, "a retired slot was used again");
	cr_assert_eq(tw_cancel(service, old), TW_GONE);
	tw_service_destroy(service);
	tw_clock_manual_destroy(clock);
}
