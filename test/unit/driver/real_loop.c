/* The descriptor of a service in the user's own loop, on the real clocks. Bounds are one-sided. */
#include <errno.h>

#include "test/support/by_hand.h"
#include "test/support/shot.h"
#include "test/support/threads.h"

/* A service that the test drives, on the default clock. */
static tw_service *service;

static void open_default(void)
{
	service = open_by_hand(NULL);
}

static void close_it(void)
{
	expect_in_fini();
	expect_eq(tw_service_destroy(service), 0);
}

TestSuite(driver_real_loop, .init = open_default, .fini = close_it, .timeout = 60);

enum { NOT_LONG_MS = 150 };

/* ------------------------------------------------------------ when readable */

/* In the place of the one that is open. */
static void reopen_on(tw_clock *clock)
{
	expect_eq(tw_service_destroy(service), 0);
	service = open_by_hand(clock);
}

static void expect_readable_when_due(tw_clock *clock)
{
	reopen_on(clock);
	static struct shot shots[50];
	int fd = tw_service_fd(service);
	expect_ge(fd, 0);
	expect_eq(tw_service_fd(service), fd);
	uint64_t seed = 3;
	for (int i = 0; i < 50; i++) {
		shots[i] = (struct shot){.service = service};
		schedule_shot(&shots[i], random_below(&seed, 100 * MS));
	}
	turn_until(service, fd, 50);
	for (int i = 0; i < 50; i++) {
		expect_eq(shots[i].runs, 1);
		expect_eq(shots[i].early, 0);
	}
	expect_eq(readable(fd, 0), false);
}

Test(driver_real_loop, is_readable_when_it_is_time)
{
	expect_readable_when_due(tw_clock_monotonic());
	expect_readable_when_due(tw_clock_boottime());
}

/* G9: in an empty service, and in one whose timers are far, nobody wakes up. */
Test(driver_real_loop, is_quiet_while_nothing_is_due)
{
	int fd = tw_service_fd(service);
	expect_eq(readable(fd, NOT_LONG_MS), false);
	for (int i = 0; i < 1000; i++)
		expect_eq(tw_schedule(service, HOUR + (uint64_t)i * SECOND, nothing, NULL, NULL),
			  0);
	expect_eq(readable(fd, 0), true); /* the first one is earlier than never */
	expect_eq(tw_service_advance(service, TW_NO_LIMIT), 0);
	expect_eq(readable(fd, NOT_LONG_MS), false);
	expect_eq(tw_schedule(service, 2 * HOUR, nothing, NULL, NULL), 0);
	expect_eq(readable(fd, NOT_LONG_MS), false);
}

/* What was scheduled before the first call counts, too. */
Test(driver_real_loop, knows_what_came_before_it)
{
	expect_eq(tw_schedule(service, 5 * MS, nothing, NULL, NULL), 0);
	int fd = tw_service_fd(service);
	turn_until(service, fd, 1);
	expect_eq(tw_schedule(service, 0, nothing, NULL, NULL), 0);
	turn_until(service, fd, 1);
	expect_eq(readable(fd, 0), false);
}

Test(driver_real_loop, stays_readable_after_a_budget_is_used_up)
{
	int fd = tw_service_fd(service);
	for (int i = 0; i < 100; i++)
		expect_eq(tw_schedule_at(service, 0, nothing, NULL, NULL), 0);
	for (int i = 0; i < 100; i += 10) {
		expect_eq(readable(fd, 0), true);
		expect_eq(tw_service_advance(service, 10), 10);
	}
	expect_eq(readable(fd, 0), false);
}

/* ------------------------------------------------------------ whose it is */

Test(driver_real_loop, is_the_services)
{
	int before = descriptors_open();
	tw_service_fd(service);
	expect_eq(descriptors_open(), before + 3);
	tw_service_fd(service);
	expect_eq(descriptors_open(), before + 3);
	reopen_on(NULL);
	expect_eq(descriptors_open(), before);
}

Test(driver_real_loop, tells_of_close)
{
	int fd = tw_service_fd(service);
	expect_eq(tw_schedule(service, HOUR, nothing, NULL, NULL), 0);
	expect_eq(tw_service_advance(service, TW_NO_LIMIT), 0);
	expect_eq(readable(fd, 0), false);
	expect_eq(tw_service_close(service, TW_CLOSE_DROP, TW_FOREVER), 0);
	for (int i = 0; i < 3; i++) {
		expect_eq(readable(fd, 0), true);
		expect_eq(tw_service_advance(service, TW_NO_LIMIT), -ESHUTDOWN);
	}
	expect_eq(tw_service_fd(service), fd);
	reopen_on(NULL);
	expect_eq(tw_service_close(service, TW_CLOSE_DROP, TW_FOREVER), 0);
	expect_eq(tw_service_fd(service), -ESHUTDOWN);
}

/* -------------------------------------------------- many turns in one tick */

/* Many times over, so that most of it happens within a tick that was turned through already. */
Test(driver_real_loop, what_is_past_runs_in_the_next_advance)
{
	for (int i = 0; i < 1000; i++) {
		tw_timer timer;
		expect_eq(
		    tw_schedule_at(service, tw_service_now(service) - 2 * MS, nothing, NULL, NULL),
		    0);
		expect_eq(tw_service_advance(service, TW_NO_LIMIT), 1);
		expect_eq(tw_schedule(service, 3600 * TW_SECOND, nothing, NULL, &timer), 0);
		expect_eq(tw_service_advance(service, TW_NO_LIMIT), 0);
		expect_eq(tw_reset_at(service, timer, tw_service_now(service) - 2 * MS), 0);
		expect_eq(tw_service_advance(service, TW_NO_LIMIT), 1);
		struct tw_task task = {
		    .size = sizeof task, .fn = nothing, .when_ns = 1, .flags = TW_TASK_AT};
		expect_eq(tw_schedule_task(service, &task, NULL), 0);
		expect_eq(tw_service_advance(service, TW_NO_LIMIT), 1);
	}
}

/* A loop that turns many times in a tick drains once, whatever it schedules for later. */
Test(driver_real_loop, what_comes_later_is_drained_once_a_tick)
{
	struct tw_service_stats stats = {.size = sizeof stats};
	expect_eq(tw_service_advance(service, TW_NO_LIMIT), 0);
	uint64_t begun_ns = tw_service_now(service);
	for (int i = 0; i < 1000; i++) {
		expect_eq(tw_schedule(service, 3600 * TW_SECOND, nothing, NULL, NULL), 0);
		expect_eq(tw_service_advance(service, TW_NO_LIMIT), 0);
	}
	uint64_t took_ticks = (tw_service_now(service) - begun_ns) / MS + 2;
	expect_eq(tw_service_stats(service, &stats), 0);
	expect_le(stats.ticks, took_ticks);
}

/* ------------------------------------------------------------ many calls a tick */

/* What is due later may wait in a lane until the next tick, but not until the lane is full. */
Test(driver_real_loop, a_driver_that_is_called_often_keeps_short_lanes_from_filling)
{
	struct tw_service_config cfg = {.size = sizeof(cfg),
					.drive = TW_DRIVE_MANUAL,
					.executor = tw_executor_inline(),
					.tick_ns = TW_SECOND,
					.lane_entries = 1024};
	expect_eq(tw_service_destroy(service), 0);
	expect_eq(tw_service_create(&service, &cfg), 0);
	for (int i = 0; i < 20000; i++) {
		expect_eq(tw_schedule(service, 600 * TW_SECOND, nothing, NULL, NULL), 0);
		expect_eq(tw_service_advance(service, TW_NO_LIMIT), 0);
	}
}
