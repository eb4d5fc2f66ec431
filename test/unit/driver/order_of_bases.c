/*
 * G6 where the tick thread falls asleep between two schedules of one thread; its publishing is
 * played by hand (schedule.c, drain.c).
 */
#include "wheel/core/service.h"
#include "wheel/driver/driver.h"
#include "test/support/rig_suite.h"

TestSuite(driver_order_of_bases, .init = open_rig, .fini = close_rig, .timeout = 30);

static void publish(tw_service *service, uint64_t flags, uint64_t base_ns)
{
	uint64_t replaced = tw__gate_sequence(tw_load_relaxed(&service->gate.word));
	service->driver->bases.bases_ns[(replaced + 1) % TW__EPOCHS] = base_ns;
	tw_store_relaxed(&service->gate.base_ns, base_ns);
	tw__gate_publish(&service->gate, flags | TW__GATE_ACCEPTING);
	service->driver->bases.replaced_ns[replaced % TW__EPOCHS] = base_ns - service->time.tick_ns;
}

/*
 * The first counts from the end of a tick that is published for sleep in that moment; the second
 * reads the clock a bit later.
 */
Test(driver_order_of_bases, a_schedule_asleep_is_not_ahead_of_one_that_saw_the_driver_awake)
{
	rig.service->time.published = true;
	struct probe first = PROBE(&rig, 1), second = PROBE(&rig, 2);
	rig_advance(&rig, 9 * MS + 900000);
	publish(rig.service, TW__GATE_OPEN, rig_now(&rig) + rig.tick_ns);
	rig_advance(&rig, 300000); /* into the next tick */
	uint64_t base_ns = rig_now(&rig) + rig.tick_ns;
	tw_store_relaxed(&rig.service->gate.base_ns, base_ns); /* half of the next publishing */
	probe_schedule(&first, 40 * MS);
	publish(rig.service, 0, base_ns);
	probe_schedule(&second, 40 * MS);
	rig_advance(&rig, SECOND);
	expect_eq(rig.ran, 2);
	expect_ids_ascend(&rig);
}

/*
 * The border between a thread's lanes rises with the cursor; a delay is not sorted by an older one
 * than the deadline before it was. Both are for one tick.
 */
Test(driver_order_of_bases, the_border_of_young_timers_never_falls)
{
	enum { COUNT = 2 * TW__YOUNG_TICKS };
	static struct probe probes[2 * COUNT];
	rig.service->time.published = rig.service->time.has_young = true;
	rig_advance(&rig, 10 * MS + MS / 2);
	uint64_t base_ns = rig_now(&rig) + rig.tick_ns;
	publish(rig.service, TW__GATE_OPEN, base_ns);
	struct probe first = PROBE(&rig, 0);
	/* the epoch of all delays that follow, and the soonest of the young ones */
	probe_schedule(&first, (TW__YOUNG_TICKS - 2) * rig.tick_ns);
	rig_advance(&rig, 6 * rig.tick_ns / 10);
	for (int i = 0; i < COUNT; i++) {
		uint64_t delay_ns = (uint64_t)(i + 3) * rig.tick_ns;
		probes[2 * i] = PROBE(&rig, 2 * i + 1);
		probes[2 * i + 1] = PROBE(&rig, 2 * i + 2);
		probe_schedule_at(&probes[2 * i], base_ns + delay_ns);
		probe_schedule(&probes[2 * i + 1], delay_ns);
	}
	rig_advance(&rig, SECOND);
	expect_eq(rig.ran, 2 * COUNT + 1);
	for (size_t i = 1; i < rig.ran; i++)
		if (rig.events[i - 1].at_ns == rig.events[i].at_ns)
			expect_lt(rig.events[i - 1].id, rig.events[i].id);
}

/* Words hold deadlines near the cursor, and the short way does not look at it. */
Test(driver_order_of_bases, a_turn_that_goes_far_ends_the_epoch)
{
	rig.service->time.published = true;
	publish(rig.service, TW__GATE_OPEN, rig_now(&rig) + rig.tick_ns);
	uint64_t word = tw__gate_look(&rig.service->gate);
	rig_advance(&rig, TW__SHORT_TICKS * rig.tick_ns);
	expect_eq(tw__gate_look(&rig.service->gate), word);
	rig_advance(&rig, (TW__SHORT_TICKS + 2) * rig.tick_ns);
	expect_gt(tw__gate_look(&rig.service->gate), word);
}

/* And beside a driver that sleeps, which learns of them late: each in its tick, and in order. */
Test(driver_order_of_bases, schedules_asleep_count_from_ones_own_clock)
{
	enum { COUNT = 64 };
	static struct probe probes[COUNT];
	static uint64_t due_ns[COUNT];
	rig.service->time.published = rig.service->time.has_young = true;
	publish(rig.service, TW__GATE_PARKED, rig_now(&rig));
	rig_advance(&rig, 10 * MS);
	for (int i = 0; i < COUNT; i++) {
		uint64_t delay_ns = (uint64_t)(i % 2 ? 20 : 60) * MS;
		probes[i] = PROBE(&rig, i);
		due_ns[i] = rig_now(&rig) + delay_ns;
		probe_schedule(&probes[i], delay_ns);
		expect_eq(tw_clock_manual_advance_by(rig.clock, MS / 10), 0);
	}
	rig_advance(&rig, SECOND);
	expect_eq(rig.ran, COUNT);
	for (int i = 0; i < COUNT; i++)
		expect_ran_at(&probes[i], rig_tick_of(&rig, due_ns[i]));
	for (size_t i = 1; i < rig.ran; i++)
		if (rig.events[i].id % 2 == rig.events[i - 1].id % 2)
			expect_lt(rig.events[i - 1].id, rig.events[i].id);
}
