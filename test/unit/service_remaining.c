/* tw_remaining of timers that are far away, before and after the driver has met them. */
#include "test/support/expect.h"
#include "test/support/rig.h"

static void expect_about(struct probe *probe, uint64_t ns)
{
	uint64_t left_ns;
	expect_eq(tw_remaining(probe->rig->service, probe->timer, &left_ns), 0);
	expect_ge(ns + MS, left_ns); /* the tick that it is due in */
	expect_ge(left_ns, ns - ns / 32);
}

Test(remaining, of_a_far_timer_counts_down_before_the_driver_turns)
{
	struct rig rig;
	rig_open(&rig, NULL);
	rig_advance(&rig, 3 * HOUR);
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, 10 * HOUR);
	expect_about(&probe, 10 * HOUR);
	expect_eq(tw_clock_manual_set(rig.clock, RIG_START_NS + 6 * HOUR), 0);
	expect_about(&probe, 7 * HOUR);
	rig_close(&rig);
}

Test(remaining, of_any_distance_is_told)
{
	struct rig rig;
	rig_open(&rig, NULL);
	struct probe probe = PROBE(&rig, 1);
	for (uint64_t delay_ns = MS; delay_ns < TW_MAX_DELAY_NS; delay_ns *= 7) {
		probe_schedule(&probe, delay_ns);
		expect_about(&probe, delay_ns);
		rig_advance(&rig, 0);
		uint64_t left_ns;
		expect_eq(tw_remaining(rig.service, probe.timer, &left_ns), 0);
		expect_ge(left_ns, delay_ns);
		expect_ge(delay_ns + MS, left_ns);
		expect_eq(tw_cancel(rig.service, probe.timer), TW_CANCELLED);
	}
	rig_close(&rig);
}
