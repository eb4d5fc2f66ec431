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
