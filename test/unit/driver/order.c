/*
 * G6: what one thread schedules with equal delays, or for one tick, is handed over in that order.
 */
#include <stdlib.h>
#include "test/support/rig_suite.h"

TestSuite(driver_order, .init = open_rig, .fini = close_rig, .timeout = 30);

static void expect_order_of_scheduling(uint64_t delay_ns)
{
	enum { COUNT = 5000 };
	static struct probe probes[COUNT];
	reopen_rig(NULL);
	for (int i = 0; i < COUNT; i++) {
		probes[i] = PROBE(&rig, i);
		probe_schedule(&probes[i], delay_ns);
		if (i % 700 == 699)
			rig_advance(&rig, MS / 2);
	}
	rig_advance(&rig, SECOND);
	expect_eq(rig.ran, COUNT);
	expect_ids_ascend(&rig);
}

Test(driver_order, of_equal_delays_is_that_of_scheduling)
{
	expect_order_of_scheduling(40 * MS);
	expect_order_of_scheduling(0);
}

Test(driver_order, in_a_tick_holds_for_timers_from_all_levels)
{
	enum { COUNT = 60 };
	static struct probe probes[COUNT];
	uint64_t due_ns = RIG_START_NS + 400 * DAY, left_ns = 400 * DAY;
	for (int i = 0; i < COUNT; i++) {
		probes[i] = PROBE(&rig, i);
		probe_schedule_at(&probes[i], due_ns);
		left_ns = left_ns * 3 / 5;
		rig_advance_to(&rig, due_ns - (left_ns > MS ? left_ns : MS));
	}
	rig_advance_to(&rig, due_ns);
	expect_eq(rig.ran, COUNT);
	expect_ids_ascend(&rig);
}

/* ------------------------------------------------------------ many random cases */

static struct probe planned[4000]; /* their ids are the turns of scheduling */
static uint64_t planned_ns[4000];

/* Events must ascend by tick, and in a tick by the turn of scheduling. */
static void expect_plan_order(void)
{
	for (size_t i = 0; i < rig.ran; i++) {
		uint64_t due_ns = rig_tick_of(&rig, planned_ns[rig.events[i].id]);
		expect_eq(rig.events[i].at_ns, due_ns);
		if (i > 0 && rig.events[i - 1].at_ns == due_ns)
			expect_lt(rig.events[i - 1].id, rig.events[i].id);
	}
}

/* Few ticks are aimed at, from many distances, so that many timers meet in each. */
static void run_random_plan(uint64_t seed, uint32_t buckets, uint64_t horizon_ns)
{
	struct tw_service_config cfg = rig_config();
	cfg.buckets = buckets;
	reopen_rig(&cfg);
	uint64_t targets_ns[40];
	for (int i = 0; i < 40; i++)
		targets_ns[i] = RIG_START_NS + horizon_ns + random_below(&seed, horizon_ns);
	for (int i = 0; i < 4000; i++) {
		uint64_t target_ns = targets_ns[random_below(&seed, 40)];
		planned_ns[i] = target_ns / MS * MS + random_below(&seed, MS);
		planned[i] = PROBE(&rig, i);
		if (random_below(&seed, 2))
			probe_schedule_at(&planned[i], planned_ns[i]);
		else
			probe_schedule(&planned[i], planned_ns[i] - rig_now(&rig));
		if (random_below(&seed, 4) == 0)
			rig_advance(&rig, random_below(&seed, horizon_ns / 1000));
	}
	rig_advance_to(&rig, RIG_START_NS + 2 * horizon_ns + MS);
	expect_eq(rig.ran, 4000);
	expect_plan_order();
}

Test(driver_order, holds_in_many_random_cases)
{
	for (uint64_t seed = 1; seed <= 5; seed++) {
		run_random_plan(seed, 64, 200 * MS);
		run_random_plan(seed, 64, 10 * SECOND);
		run_random_plan(seed, 4096, 6 * SECOND);
		run_random_plan(seed, 4096, HOUR);
	}
}

/* A driver that was held up hands over all it missed in the order of the deadlines. */
Test(driver_order, after_a_stall_is_that_of_the_ticks)
{
	static struct probe probes[2000];
	for (int i = 0; i < 2000; i++) {
		int place = (i * 7) % 2000;
		probes[i] = PROBE(&rig, place);
		probe_schedule(&probes[i], (uint64_t)(place + 1) * 11 * MS);
	}
	rig_advance(&rig, 0);
	expect_eq(tw_clock_manual_set(rig.clock, RIG_START_NS + HOUR), 0);
	expect_eq(tw_service_advance(rig.service, TW_NO_LIMIT), 2000);
	expect_eq(rig.ran, 2000);
	expect_ids_ascend(&rig);
}

/* A budget cuts the hand-over short and leaves the rest in order. */
Test(driver_order, holds_over_advances_with_a_budget)
{
	static struct probe probes[1000];
	for (int i = 0; i < 1000; i++) {
		probes[i] = PROBE(&rig, i);
		probe_schedule(&probes[i], (uint64_t)(i / 100 + 1) * MS);
	}
	expect_eq(tw_clock_manual_set(rig.clock, RIG_START_NS + SECOND), 0);
	for (size_t ran = 0; ran < 1000; ran += 7) {
		size_t left = 1000 - ran;
		expect_eq(tw_service_advance(rig.service, 7), left < 7 ? left : 7);
	}
	expect_eq(tw_service_advance(rig.service, 7), 0);
	expect_eq(rig.ran, 1000);
	expect_ids_ascend(&rig);
}
