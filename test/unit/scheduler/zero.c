/* Schedulers on clocks that the test defines: one that stays at 0, one that counts. */
#include <errno.h>

#include "test/support/work_rig.h"
#include "mpsc/base/clock.h"

TestSuite(scheduler_zero, .timeout = 30);

static bool timed_out;
static unsigned turns;

static int note(struct tw_turn *turn, void *arg)
{
	timed_out = turn->did_timeout;
	turns++;
	return TW_TURN_DONE;
}

static struct tw_scheduler_config manual_host(void)
{
	return (struct tw_scheduler_config){.size = sizeof(struct tw_scheduler_config),
					    .host = TW_HOST_MANUAL};
}

static tw_service *service_on(tw_clock *clock)
{
	tw_service *service;
	struct tw_service_config config = rig_config();
	config.clock = clock;
	expect_eq(tw_service_create(&service, &config), 0);
	return service;
}

/* A task at the first and at the last instant of a clock. */
Test(scheduler_zero, instants_do_not_wrap)
{
	static const struct {
		uint64_t now_ns;
		enum tw_priority priority;
		bool timed_out;
	} rows[] = {{0, TW_PRIORITY_IMMEDIATE, true}, {INT64_MAX - 10, TW_PRIORITY_IDLE, false}};
	for (int i = 0; i < 2; i++) {
		tw_clock *clock;
		tw_scheduler *scheduler;
		struct tw_scheduler_config config = manual_host();
		expect_eq(tw_clock_manual_create(&clock, rows[i].now_ns), 0);
		tw_service *service = service_on(clock);
		expect_eq(tw_scheduler_create(&scheduler, service, &config), 0);
		expect_eq(tw_scheduler_submit(scheduler, rows[i].priority, note, NULL, NULL), 0);
		expect_eq(tw_scheduler_run(scheduler, TW_NO_LIMIT), TW_SCHEDULER_RUN_IDLE);
		expect_eq(timed_out, rows[i].timed_out);
		expect_eq(tw_scheduler_destroy(scheduler), 0);
		expect_eq(tw_service_destroy(service), 0);
		tw_clock_manual_destroy(clock);
	}
}

/* ----------------------------------------------------------- one reading per run */

static unsigned readings;

static uint64_t count_reading(const tw_clock *clock)
{
	return 1000 + readings++;
}

Test(scheduler_zero, clock_is_read_once_for_each_post_and_run)
{
	struct tw__clock_ops ops = *tw_clock_monotonic()->ops;
	ops.now = count_reading;
	ops.id = -1;
	tw_clock clock = {&ops};
	tw_scheduler *scheduler;
	struct tw_scheduler_config config = manual_host();
	tw_service *service = service_on(&clock);
	expect_eq(tw_scheduler_create(&scheduler, service, &config), 0);
	readings = 0;
	for (int i = 0; i < 100; i++)
		expect_eq(tw_scheduler_submit(scheduler, TW_PRIORITY_NORMAL, note, NULL, NULL), 0);
	expect_eq(readings, 100);
	readings = 0;
	expect_eq(tw_scheduler_run(scheduler, TW_NO_LIMIT), TW_SCHEDULER_RUN_IDLE);
	expect_eq(turns, 100);
	/* as the slice begins, and after each run that leaves others waiting */
	expect_eq(readings, 100);
	for (unsigned n = 1; n <= 3; n++) {
		readings = 0;
		expect_eq(tw_scheduler_submit(scheduler, TW_PRIORITY_NORMAL, note, NULL, NULL), 0);
		expect_eq(tw_scheduler_run(scheduler, TW_NO_LIMIT), TW_SCHEDULER_RUN_IDLE);
		expect_eq(readings, 2);
	}
	expect_eq(tw_scheduler_destroy(scheduler), 0);
	expect_eq(tw_service_destroy(service), 0);
}
