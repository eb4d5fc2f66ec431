/*
 * G6: what one thread schedules with equal delays, or for one tick, is handed over in that order.
 */
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
