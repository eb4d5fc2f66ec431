/* Slots by themselves: what magazines and depot hand out, and what happens when a generation is used up. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tickwheel.h"
#include "wheel/core/service.h"
#include "wheel/core/local.h"

Test(timer_slots, every_slot_is_handed_out_once)
{
	enum { MAX = 5000 };
	struct tw__slots slots;
	struct tw__magazine one, two;
	static bool out[MAX + 2 * TW__MAGAZINE_MAX + 1];
	cr_assert_eq(tw__slots_init(&slots, MAX), 0);
	tw__magazine_init(&slots, &one);
	tw__magazine_init(&slots, &two);
	uint32_t taken = 0, slot;
	while ((slot = tw__entry_slot(tw__slot_get(&slots, taken % 2 ? &one : &two))) != 0) {
		cr_assert(slot < sizeof out && !out[slot], "slot %u twice", slot);
		out[slot] = true;
		taken++;
	}
	cr_assert(taken >= MAX, "only %u of %u", taken, MAX);
	tw__slots_fini(&slots);
}

/* Slots that are used up for good take nothing away from max_timers. */
Test(timer_slots, retired_ones_are_replaced)
{
	enum { MAX = 100, RETIRED = 5000 };
	struct tw__slots slots;
	struct tw__magazine magazine;
	cr_assert_eq(tw__slots_init(&slots, MAX), 0);
	tw__magazine_init(&slots, &magazine);
	tw_store_relaxed(&slots.fresh, 1 + RETIRED);
	tw_store_relaxed(&slots.retired, RETIRED);
	for (int i = 0; i < MAX; i++)
		cr_assert_gt(tw__entry_slot(tw__slot_get(&slots, &magazine)), RETIRED);
	tw__slots_fini(&slots);
}

Test(timer_slots, come_back_through_the_depot_to_another_thread)
{
	enum { MAX = 2000 };
	struct tw__slots slots;
	struct tw__magazine one, two;
	cr_assert_eq(tw__slots_init(&slots, MAX), 0);
	tw__magazine_init(&slots, &one);
	tw__magazine_init(&slots, &two);
	for (int round = 0; round < 20; round++) {
		uint32_t held[MAX];
		for (int i = 0; i < MAX; i++)
			cr_assert((held[i] = tw__entry_slot(tw__slot_get(&slots, &one))) != 0, "round %d, slot %d",
				  round, i);
		for (int i = 0; i < MAX; i++)
			tw__slot_put(&slots, i % 3 ? &two : NULL, held[i], 1);
	}
	tw__slots_fini(&slots);
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
	uint32_t end = tw_load_relaxed(&service->slots.fresh);
	for (uint32_t slot = 1; slot < end; slot++)
		tw_store_relaxed(&service->slots.words[slot], tw__word_make(TW__LAST_GENERATION - 1, TW__FREE, 0));
	tw__local_of(service)->magazine.next = 0; /* it was looked up before */
	for (uint32_t slot = 1; slot < end; slot++) {
		cr_assert_eq(tw_schedule(service, 0, count_run, &runs, &timer), 0);
		cr_assert_eq(tw_advance(service, TW_NO_LIMIT), 1);
		cr_assert_eq(tw_cancel(service, timer), TW_GONE);
	}
	struct tw_stats stats = {.size = sizeof stats};
	tw_stats_get(service, &stats);
	cr_assert_eq(stats.retired_slots, end - 1);
	cr_assert_eq(runs, end - 1);
	cr_assert_eq(tw_schedule(service, 0, count_run, &runs, &timer), 0, "retired slots count against max_timers");
	cr_assert((uint32_t)timer.id >= end, "a retired slot was used again");
	cr_assert_eq(tw_cancel(service, old), TW_GONE);
	tw_service_destroy(service);
	tw_clock_manual_destroy(clock);
}
