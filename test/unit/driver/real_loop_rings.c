/*
 * Which calls ring for a driver that sleeps: those that bring an earlier tick than the one that it
 * has planned. Deadlines are compared as the ends of their ticks. On the real clocks, far ahead.
 */
#include "test/support/by_hand.h"
#include "test/support/shot.h"

enum { TURNS = 100000, MOST_RINGS = TURNS / 1000 };

static struct {
	tw_service *service;
	int fd;
	uint64_t plan_ns; /* the end of a tick, half a minute ahead */
} loop;

/* Ticks so long that the wheel plans for a timer's own tick, and that tests do not last one. */
#define TICK_NS SECOND

/* A loop that has planned for the tick of one timer. */
static void open_planned_on(tw_clock *clock)
{
	struct tw_service_config cfg = {.size = sizeof cfg,
					.drive = TW_DRIVE_MANUAL,
					.executor = tw_executor_inline(),
					.clock = clock,
					.tick_ns = TICK_NS};
	expect_eq(tw_service_create(&loop.service, &cfg), 0);
	loop.fd = tw_service_fd(loop.service);
	expect_ge(loop.fd, 0);
	expect_eq(tw_schedule(loop.service, 30 * SECOND, nothing, NULL, NULL), 0);
	expect_eq(tw_service_next_expiry(loop.service, &loop.plan_ns), 0);
	expect_eq(tw_service_advance(loop.service, TW_NO_LIMIT), 0);
	expect_eq(readable(loop.fd, 0), false);
}

static void open_planned(void)
{
	open_planned_on(NULL);
}

/* Whether it was rung for since the last call; it plans anew. */
static bool rung(void)
{
	bool is_readable = readable(loop.fd, 0);
	expect_eq(tw_service_advance(loop.service, TW_NO_LIMIT), 0);
	expect_eq(readable(loop.fd, 0), false);
	return is_readable;
}

static void close_loop(void)
{
	expect_in_fini();
	expect_eq(tw_service_destroy(loop.service), 0);
}

TestSuite(driver_real_loop_rings, .init = open_planned, .fini = close_loop, .timeout = 60);

Test(driver_real_loop_rings, schedule_rings_for_an_earlier_tick_only)
{
	expect_eq(tw_schedule_at(loop.service, loop.plan_ns, nothing, NULL, NULL), 0);
	expect_eq(rung(), false);
	expect_eq(tw_schedule_at(loop.service, loop.plan_ns - 1, nothing, NULL, NULL), 0);
	expect_eq(rung(), false);
	uint64_t first_ns = loop.plan_ns - TICK_NS + 1;
	expect_eq(tw_schedule_at(loop.service, first_ns, nothing, NULL, NULL), 0);
	expect_eq(rung(), false);
	expect_eq(tw_schedule_at(loop.service, first_ns - 1, nothing, NULL, NULL), 0);
	expect_eq(rung(), true);
}

Test(driver_real_loop_rings, task_rings_for_an_earlier_tick_only)
{
	expect_eq(tw_service_destroy(loop.service), 0);
	open_planned_on(tw_clock_boottime());
	struct tw_task task = {
	    .size = sizeof task, .fn = nothing, .flags = TW_TASK_AT, .name = "ring"};
	task.when_ns = loop.plan_ns - TICK_NS + 1;
	expect_eq(tw_schedule_task(loop.service, &task, NULL), 0);
	expect_eq(rung(), false);
	task.when_ns--;
	expect_eq(tw_schedule_task(loop.service, &task, NULL), 0);
	expect_eq(rung(), true);
}

/* Of a timer that waits for a later tick, with or without an extension record. */
static void expect_reset_rings(const char *name)
{
	tw_timer timer;
	struct tw_task task = {
	    .size = sizeof task, .fn = nothing, .when_ns = 60 * SECOND, .name = name};
	expect_eq(tw_schedule_task(loop.service, &task, &timer), 0);
	expect_eq(rung(), false);
	uint64_t first_ns = loop.plan_ns - TICK_NS + 1;
	expect_eq(tw_reset_at(loop.service, timer, first_ns), 0);
	expect_eq(rung(), false);
	expect_eq(tw_reset_at(loop.service, timer, first_ns - 1), 0);
	expect_eq(rung(), true);
}

Test(driver_real_loop_rings, reset_rings_for_an_earlier_tick_only)
{
	expect_reset_rings(NULL);
	expect_eq(tw_service_destroy(loop.service), 0);
	open_planned();
	expect_reset_rings("ring");
}

/*
 * A loop that gives each request a timeout and cancels it. Its turns are much shorter than a tick,
 * so nearly all deadlines are in the planned tick. Rings that remain are for a lane that
 * is not packed.
 */
Test(driver_real_loop_rings, request_timeouts_hardly_ring)
{
	tw_timer timer = {0};
	int rings = 0;
	for (int i = 0; i < TURNS; i++) {
		uint64_t now_ns = tw_service_now(loop.service);
		tw_cancel(loop.service, timer);
		expect_eq(tw_schedule_at(loop.service, now_ns + 20 * SECOND, nothing, NULL, &timer),
			  0);
		if (readable(loop.fd, 0)) {
			rings++;
			expect_eq(tw_service_advance(loop.service, TW_NO_LIMIT), 0);
		}
	}
	expect_le(rings, MOST_RINGS);
}
