/* A service with a tick thread, on a clock that the test moves: what the thread does. */
#include <errno.h>

#include "threaded.h"

TestSuite(driver_tick_thread, .init = open_threaded, .fini = close_rig, .timeout = 30);

Test(driver_tick_thread, has_handed_over_what_is_due_when_an_advance_returns)
{
	static struct probe probes[1000];
	for (int i = 0; i < 1000; i++) {
		probes[i] = PROBE(&rig, i);
		probe_schedule(&probes[i], (uint64_t)(i / 10 + 1) * 13 * MS);
	}
	for (size_t step = 1; step <= 100; step++) {
		rig_advance(&rig, 13 * MS);
		expect_eq(rig.ran, step * 10);
	}
	expect_ids_ascend(&rig);
	for (size_t i = 0; i < rig.ran; i++)
		cr_assert(!pthread_equal(rig.events[i].thread, pthread_self()));
}

Test(driver_tick_thread, hands_over_what_is_due_at_once)
{
	struct probe zero = PROBE(&rig, 1), past = PROBE(&rig, 2);
	for (int i = 0; i < 500; i++) {
		probe_schedule(&zero, 0);
		probe_schedule_at(&past, RIG_START_NS);
		rig_advance(&rig, MS);
		expect_eq(zero.runs, i + 1);
		expect_eq(past.runs, i + 1);
	}
}

Test(driver_tick_thread, runs_nothing_early)
{
	static struct probe probes[2000];
	static uint64_t due_ns[2000];
	uint64_t seed = 41;
	for (int i = 0; i < 2000; i++) {
		uint64_t delay_ns = random_below(&seed, 10 * SECOND);
		due_ns[i] = rig_now(&rig) + delay_ns;
		probes[i] = PROBE(&rig, i);
		probe_schedule(&probes[i], delay_ns);
		rig_advance(&rig, random_below(&seed, 3 * MS));
	}
	rig_advance(&rig, MINUTE);
	for (int i = 0; i < 2000; i++) {
		expect_eq(probes[i].runs, 1);
		expect_ge(probes[i].ran_at_ns, due_ns[i]);
	}
}

Test(driver_tick_thread, honours_cancels_and_resets)
{
	struct probe cancelled = PROBE(&rig, 1), later = PROBE(&rig, 2), earlier = PROBE(&rig, 3);
	probe_schedule_released(&cancelled, 10 * MS);
	probe_schedule(&later, 10 * MS);
	probe_schedule(&earlier, HOUR);
	rig_advance(&rig, 5 * MS);
	expect_eq(tw_cancel(rig.service, cancelled.timer), TW_CANCELLED);
	expect_eq(tw_reset(rig.service, later.timer, 10 * MS), 0);
	expect_eq(tw_reset(rig.service, earlier.timer, 2 * MS), 0);
	rig_advance(&rig, 2 * MS);
	expect_eq(earlier.runs, 1);
	rig_advance(&rig, 3 * MS);
	expect_eq(later.runs, 0);
	rig_advance(&rig, 5 * MS);
	expect_eq(later.runs, 1);
	expect_eq(cancelled.runs, 0);
	expect_released(&cancelled, TW_FATE_CANCELLED);
}

Test(driver_tick_thread, catches_up_after_ten_years)
{
	struct probe once = PROBE(&rig, 1), series = PROBE(&rig, 2), beyond = PROBE(&rig, 3);
	probe_schedule(&once, 3 * 365 * DAY);
	probe_schedule_every(&series, rate_of(MS, MS, 0));
	probe_schedule(&beyond, 10 * 365 * DAY + 5 * MS);
	rig_advance(&rig, 10 * 365 * DAY);
	expect_eq(once.runs, 1);
	expect_eq(series.runs, 1);
	expect_eq(beyond.runs, 0);
	rig_advance(&rig, 5 * MS);
	expect_eq(beyond.runs, 1);
	/* Each instant was run or counted, except those that the next run will count. */
	uint64_t instants = 10 * 365 * DAY / MS + 5;
	expect_le(series.runs + series.overruns, instants);
	expect_ge(series.runs + series.overruns, instants - 5);
	expect_eq(tw_cancel(rig.service, series.timer), TW_CANCELLED);
}

Test(driver_tick_thread, takes_a_clock_that_steps_back)
{
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, 10 * SECOND);
	rig_advance(&rig, 5 * SECOND);
	expect_eq(tw_clock_manual_set(rig.clock, RIG_START_NS), 0);
	rig_advance(&rig, 4 * SECOND);
	expect_eq(probe.runs, 0);
	rig_advance(&rig, 6 * SECOND);
	expect_eq(probe.runs, 1);
	expect_ge(stats_of(rig.service).clock_steps, 1);
}

static void advance_the_clock(struct probe *probe)
{
	probe->answer = tw_clock_manual_advance_by(probe->rig->clock, MS);
}

static void validate_and_close(struct probe *probe)
{
	tw_service *service = probe->rig->service;
	probe->answer = tw_service_validate(service, NULL, 0) == -EBUSY &&
			tw_service_close(service, TW_CLOSE_DROP, 0) == -EDEADLK &&
			tw_service_destroy(service) == -EDEADLK;
}

Test(driver_tick_thread, refuses_callbacks_what_would_wait_for_them)
{
	struct probe clock = PROBE(&rig, 1), service = PROBE(&rig, 2);
	clock.act = advance_the_clock;
	service.act = validate_and_close;
	probe_schedule(&clock, MS);
	probe_schedule(&service, MS);
	rig_advance(&rig, MS);
	expect_eq(clock.answer, -EDEADLK);
	expect_eq(service.answer, 1);
}

Test(driver_tick_thread, can_be_asked_for_everything_while_it_sleeps)
{
	struct probe probe = PROBE(&rig, 1);
	for (int i = 0; i < 200; i++) {
		probe_schedule(&probe, MS);
		expect_sound(rig.service);
		rig_advance(&rig, MS);
		expect_sound(rig.service);
	}
	expect_eq(probe.runs, 200);
}

/* ------------------------------------------------------------ a pool on the manual clock */

Test(driver_tick_thread, feeds_a_pool)
{
	struct tw_service_config cfg = {.size = sizeof(cfg), .workers = 3};
	reopen_rig(&cfg);
	static struct probe probes[5000];
	for (int i = 0; i < 5000; i++) {
		probes[i] = PROBE(&rig, i);
		probe_schedule_released(&probes[i], (uint64_t)(i % 50) * MS);
	}
	rig_advance(&rig, 50 * MS);
	await_runs(rig.service, 5000);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, TW_FOREVER), 0);
	for (int i = 0; i < 5000; i++) {
		expect_eq(probes[i].runs, 1);
		expect_released(&probes[i], TW_FATE_FIRED);
	}
}

Test(driver_tick_thread, feeds_one_worker_in_order)
{
	struct tw_service_config cfg = {.size = sizeof(cfg), .workers = 1, .max_workers = 1};
	reopen_rig(&cfg);
	static struct probe probes[3000];
	for (int i = 0; i < 3000; i++) {
		probes[i] = PROBE(&rig, i);
		probe_schedule(&probes[i], (uint64_t)(i / 1000 + 1) * MS);
	}
	rig_advance(&rig, 50 * MS);
	await_runs(rig.service, 3000);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, TW_FOREVER), 0);
	expect_eq(rig.ran, 3000);
	expect_ids_ascend(&rig);
}

Test(driver_tick_thread, is_not_needed_to_feed_a_pool)
{
	struct tw_service_config cfg = {
	    .size = sizeof(cfg), .workers = 2, .drive = TW_DRIVE_MANUAL};
	reopen_rig(&cfg);
	static struct probe probes[1000]; /* one each: two workers run them side by side */
	for (int i = 0; i < 1000; i++) {
		probes[i] = PROBE(&rig, i);
		probe_schedule(&probes[i], (uint64_t)i * MS);
	}
	expect_eq(tw_clock_manual_set(rig.clock, RIG_START_NS + SECOND), 0);
	expect_eq(tw_service_advance(rig.service, TW_NO_LIMIT), 1000);
	await_runs(rig.service, 1000);
	expect_eq(tw_service_close(rig.service, TW_CLOSE_DROP, TW_FOREVER), 0);
	expect_eq(rig.ran, 1000);
	for (int i = 0; i < 1000; i++)
		expect_eq(probes[i].runs, 1);
}
