/*
 * Sweeps while the driver sleeps till a far deadline. Cancels wake it, and what they leave behind
 * stays below a bound.
 */
#include <poll.h>

#include "test/support/rig.h"
#include "wheel/core/service.h"

TestSuite(driver_sweep_asleep, .timeout = 60);

static void never_run(void *arg)
{
	(void)arg;
}

/* LEFT: as many dead as live ones, and what a producer may leave behind (G11). */
enum { ASLEEP = 60000, KEPT = 3000, LEFT = 2 * KEPT + 4096 };

static tw_timer asleep[ASLEEP];

/*
 * Schedules those from `first` on, and waits until the tick thread has filed all of them and
 * sleeps.
 */
static void arm_and_fall_asleep(tw_service *service, int first)
{
	for (int i = first; i < ASLEEP; i++)
		expect_eq(tw_schedule(service, HOUR, never_run, NULL, &asleep[i]), 0);
	while (!(tw__gate_look(&service->gate) & TW__GATE_PARKED) ||
	       stats_of(service).entries < ASLEEP)
		;
}

static void cancel_from(tw_service *service, int first, int end)
{
	for (int i = first; i < end; i++)
		expect_eq(tw_cancel(service, asleep[i]), TW_CANCELLED);
}

static void await_entries(tw_service *service, uint64_t most)
{
	while (stats_of(service).entries > most)
		;
}

/*
 * Beside a tick thread that sleeps till the first of them: cancels wake it, now and then. From the
 * second time on it has drained, before, what the next timers of the slots were, and that does not
 * tell. meanwhile: some are cancelled while a sweep is under way, behind its back, and ring for
 * nobody: who sweeps looks again.
 */
static void expect_swept(bool meanwhile)
{
	enum { LATER = 3 * ASLEEP / 4 /* enough before it for the last ring to suffice */ };
	struct tw_service_config cfg = {.size = sizeof cfg, .executor = tw_executor_inline()};
	tw_service *service;
	expect_eq(tw_service_create(&service, &cfg), 0);
	for (int storm = 0; storm < 5; storm++) {
		arm_and_fall_asleep(service, storm ? KEPT : 0);
		cancel_from(service, KEPT, LATER);
		if (meanwhile)
			await_entries(service, ASLEEP - 1); /* it has begun */
		cancel_from(service, LATER, ASLEEP);
		await_entries(service, LEFT);
	}
	for (int i = 0; i < KEPT; i++)
		expect_eq(tw_is_pending(service, asleep[i]), true);
	expect_eq(tw_service_destroy(service), 0);
}

Test(driver_sweep_asleep, is_carried_out_while_the_tick_thread_sleeps)
{
	expect_swept(false);
	expect_swept(true);
}

/*
 * The user's own loop drives the service and sleeps on the descriptor. A sweep that left too much
 * is followed by another before the loop may sleep for long.
 */
Test(driver_sweep_asleep, is_carried_out_by_a_loop_that_sleeps)
{
	struct tw_service_config cfg = {
	    .size = sizeof cfg, .executor = tw_executor_inline(), .drive = TW_DRIVE_MANUAL};
	tw_service *service;
	expect_eq(tw_service_create(&service, &cfg), 0);
	struct pollfd readable = {.fd = tw_service_fd(service), .events = POLLIN};
	for (int storm = 0; storm < 3; storm++) {
		for (int i = storm ? KEPT : 0; i < ASLEEP; i++)
			expect_eq(tw_schedule(service, HOUR, never_run, NULL, &asleep[i]), 0);
		while (stats_of(service).entries < ASLEEP)
			expect_eq(tw_service_advance(service, TW_NO_LIMIT), 0);
		cancel_from(service, KEPT, ASLEEP);
		while (stats_of(service).entries > 2 * KEPT + 4096) {
			/* ms: far longer than the test takes */
			expect_eq(poll(&readable, 1, 20000), 1);
			expect_eq(tw_service_advance(service, TW_NO_LIMIT), 0);
		}
	}
	expect_eq(tw_service_destroy(service), 0);
}
