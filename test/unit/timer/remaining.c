/* tw_remaining of timers that are far away, before and after the driver has met them. */
#include "test/support/expect.h"
#include "test/support/rig_suite.h"

TestSuite(timer_remaining, .init = open_rig, .fini = close_rig);

/* To the tick that it is due in. */
static void expect_left(struct probe *probe, uint64_t ns)
{
	uint64_t left_ns = 0;
	expect_eq(tw_remaining(probe->rig->service, probe->timer, &left_ns), 0);
	expect_ge(left_ns, ns);
	expect_lt(left_ns, ns + probe->rig->tick_ns);
}

Test(timer_remaining, of_a_far_timer_counts_down_before_the_driver_turns)
{
	rig_advance(&rig, 3 * HOUR);
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, 10 * HOUR);
	expect_left(&probe, 10 * HOUR);
	expect_eq(tw_clock_manual_set(rig.clock, RIG_START_NS + 6 * HOUR), 0);
	expect_left(&probe, 7 * HOUR);
}

/* Half an hour is far at the finest tick. */
Test(timer_remaining, is_exact_at_any_tick)
{
	static const uint64_t ticks_ns[] = {50000, 1000000, 1000000000};
	for (int i = 0; i < 3; i++) {
		struct tw_service_config cfg = rig_config();
		cfg.tick_ns = ticks_ns[i];
		reopen_rig(&cfg);
		struct probe probe = PROBE(&rig, 1);
		for (uint64_t minutes = 1; minutes < 60 * 24 * 400; minutes *= 6) {
			probe_schedule(&probe, minutes * MINUTE);
			expect_left(&probe, minutes * MINUTE);
			probe_schedule_at(&probe, rig_now(&rig) + minutes * MINUTE);
			expect_left(&probe, minutes * MINUTE);
		}
		rig_advance(&rig, 0);
		expect_left(&probe, 279936 * MINUTE);
	}
}

/* Moved far, again and again, between two turns of the driver and after them. */
Test(timer_remaining, of_a_timer_that_was_moved_is_of_the_last_move)
{
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, SECOND);
	static const uint64_t moves_ns[] = {20 * HOUR, 3000 * HOUR, 11 * HOUR, SECOND,
					    400 * DAY, MINUTE,      10 * HOUR};
	for (int round = 0; round < 3; round++) {
		for (size_t i = 0; i < sizeof moves_ns / sizeof *moves_ns; i++) {
			expect_eq(tw_reset(rig.service, probe.timer, moves_ns[i]), 0);
			expect_left(&probe, moves_ns[i]);
			if (round)
				rig_advance(&rig, 0);
			expect_left(&probe, moves_ns[i]);
		}
		rig_advance(&rig, HOUR);
		expect_left(&probe, 9 * HOUR);
	}
}

static void look_at_far_move(struct probe *probe)
{
	probe->answer = tw_reset(probe->rig->service, probe->timer, 30 * HOUR);
}

Test(timer_remaining, of_series_and_tasks_is_exact)
{
	struct probe series = PROBE(&rig, 1), again = PROBE(&rig, 2), many[3];
	probe_schedule_every(&series, rate_of(12 * HOUR, 20 * HOUR, 0));
	expect_left(&series, 12 * HOUR);
	again.act = look_at_far_move;
	probe_schedule(&again, 12 * HOUR);
	struct tw_task tasks[3];
	for (int i = 0; i < 3; i++) {
		many[i] = PROBE(&rig, 3 + i);
		tasks[i] =
		    (struct tw_task){.size = sizeof(*tasks), .fn = probe_run, .arg = &many[i]};
		tasks[i].when_ns = 20 * HOUR + (uint64_t)i * MS;
	}
	for (int i = 0; i < 3; i++) {
		expect_eq(tw_schedule_task(rig.service, &tasks[i], &many[i].timer), 0);
		expect_left(&many[i], tasks[i].when_ns);
	}
	rig_advance(&rig, 12 * HOUR);
	expect_left(&series, 20 * HOUR);
	expect_eq(again.answer, 0);
	expect_left(&again, 30 * HOUR);
	for (int i = 0; i < 3; i++)
		expect_left(&many[i], tasks[i].when_ns - 12 * HOUR);
	rig_advance(&rig, HOUR);
	expect_left(&series, 19 * HOUR);
	expect_left(&again, 29 * HOUR);
}
