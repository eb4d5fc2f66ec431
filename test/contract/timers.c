/* timer.h, task.h, group.h, executor.h. */
#include <errno.h>

#include "calls.h"

static tw_clock *clock;
static tw_service *service;                /* driven by hand, on `clock`, inline */
static tw_timer timer, persistent, series; /* pending; armed; pending */
static tw_timer running;                   /* of the callback that runs */
static tw_group group;
static uint64_t ns, born_ns; /* born_ns: the service's creation */
static tw_timer out;

#define PERIOD(...) STRUCT(tw_period, .period_ns = MS, __VA_ARGS__)
#define TASK(...) STRUCT(tw_task, .fn = nothing, __VA_ARGS__)

static void calls(void)
{
	CALL(tw_schedule(service, MS, nothing, NULL, &out));
	CALL(tw_schedule_at(service, MS, nothing, NULL, &out));
	CALL(tw_schedule_every(service, PERIOD(.first_ns = MS), nothing, NULL, &out));
	CALL(tw_schedule_task(service, TASK(.when_ns = MS), &out));
	CALL(tw_schedule_task(service, TASK(.when_ns = MS, .group = group), &out));
	CALL(tw_reset(service, timer, MS));
	CALL(tw_reset_at(service, timer, MS));
	CALL(tw_reset_earlier(service, timer, 2 * MS));
	CALL(tw_set_period(service, series, MS));
	CALL(tw_remaining(service, timer, &ns));
	CALL(tw_disarm(service, persistent));
	CALL(tw_cancel(service, timer));
	CALL(tw_cancel_wait(service, timer, 0));
	CALL(tw_current(PLAIN(tw_run_info)));
}

static void group_calls(void)
{
	tw_group other;
	CALL(tw_group_create(&other, service));
	CALL(tw_group_stats(service, group, PLAIN(tw_group_stats)));
	CALL(tw_group_cancel(service, group));
	CALL(tw_group_cancel_wait(service, group, 0));
	CALL(tw_group_close(service, group, NULL, NULL));
	CALL(tw_group_close(service, group, nothing, NULL));
	CALL(tw_group_close(service, group, nothing, NULL));
	CALL(tw_schedule_task(service, TASK(.when_ns = MS, .group = group), &out));
	CALL(tw_group_destroy(service, group));
	CALL(tw_schedule_task(service, TASK(.when_ns = MS, .group = group), &out));
	CALL(tw_group_destroy(service, group));
	CALL(tw_group_stats(service, group, PLAIN(tw_group_stats)));
	CALL(tw_group_cancel(service, group));
	CALL(tw_group_cancel_wait(service, group, 0));
	CALL(tw_group_close(service, group, NULL, NULL));
	CALL(tw_group_close(service, group, nothing, NULL));
}

/* What may need memory: only calls that change no handle of the table. */
static void growing_calls(void)
{
	tw_group other;
	CALL(tw_schedule(service, MS, nothing, NULL, &out));
	CALL(tw_schedule_at(service, MS, nothing, NULL, &out));
	CALL(tw_schedule_every(service, PERIOD(.first_ns = MS), nothing, NULL, &out));
	CALL(tw_schedule_task(service, TASK(.when_ns = MS), &out));
	CALL(tw_reset(service, timer, MS));
	CALL(tw_reset_at(service, timer, 0));
	CALL(tw_reset(service, timer, 9 * MS));
	CALL(tw_reset_earlier(service, timer, MS));
	CALL(tw_reset(service, timer, 9 * MS));
	tw_service *fresh;
	MUST(tw_service_create(&fresh, STRUCT(tw_service_config, .drive = TW_DRIVE_MANUAL,
					      .executor = tw_executor_inline())));
	CALL(tw_group_create(&other, fresh));
	MUST(tw_service_destroy(fresh));
}

static void bad(void)
{
	situation("with bad arguments");
	CALL(tw_schedule_at(service, born_ns + TW_MAX_DELAY_NS + 1, nothing, NULL, &out));
	MUST(tw_schedule_at(service, born_ns + TW_MAX_DELAY_NS, nothing, NULL, &out));
	CALL(tw_schedule_every(service, BIG(tw_period, .period_ns = 1), nothing, NULL, &out));
	CALL(tw_schedule_task(service, TASK(.group = {12345}), &out));
	CALL(tw_schedule_task(service, TASK(.period = BIG(tw_period, .period_ns = 1)), &out));
	CALL(tw_reset(service, (tw_timer){0}, MS));
	CALL(tw_reset_at(service, (tw_timer){0}, MS));
	CALL(tw_reset_earlier(service, (tw_timer){0}, MS));
	CALL(tw_set_period(service, series, 0));
	CALL(tw_set_period(service, series, TOO_LONG));
	CALL(tw_set_period(service, timer, MS));
	CALL(tw_set_period(service, (tw_timer){0}, MS));
	CALL(tw_cancel(service, (tw_timer){0}));
	CALL(tw_cancel_wait(service, (tw_timer){0}, 0));
	CALL(tw_remaining(service, (tw_timer){0}, &ns));
	CALL(tw_disarm(service, (tw_timer){0}));
}

static void from_the_callback(void *arg)
{
	situation("inside its callback");
	running = tw_self();
	CALL(tw_reset(service, running, MS));
	CALL(tw_cancel_wait(service, running, 0));
	CALL(tw_reset(service, running, MS));
	CALL(tw_reset_at(service, running, MS));
	CALL(tw_reset_earlier(service, running, MS));
	CALL(tw_remaining(service, running, &ns));
	CALL(tw_cancel(service, running));
	calls();
}

static void from_a_series(void *arg)
{
	situation("inside its callback");
	running = tw_self();
	CALL(tw_set_period(service, running, MS));
	MUST(tw_cancel(service, running) == TW_RUNNING ? 0 : -1);
	CALL(tw_set_period(service, running, MS));
}

static void of_a_running_timer(void)
{
	situation("while its callback runs on another thread");
	tw_service *threaded;
	struct hold held = {0};
	MUST(tw_service_create(&threaded, NULL));
	MUST(tw_schedule(threaded, 0, hold, &held, &out));
	await_begun(&held);
	CALL(tw_reset(threaded, out, MS));
	CALL(tw_reset_at(threaded, out, MS));
	CALL(tw_reset_earlier(threaded, out, MS));
	CALL(tw_remaining(threaded, out, &ns));
	CALL(tw_cancel(threaded, out));
	CALL(tw_cancel_wait(threaded, out, 0));
	let_go(&held);
	CALL(tw_cancel_wait(threaded, out, TW_FOREVER));
	MUST(tw_service_destroy(threaded));
}

static void in_a_full_service(void)
{
	situation("full");
	tw_service *small;
	tw_group other;
	MUST(tw_service_create(&small, STRUCT(tw_service_config, .drive = TW_DRIVE_MANUAL,
					      .max_timers = 1, .executor = tw_executor_inline())));
	for (int i = 0; i < 2000; i++)
		tw_schedule(small, TW_SECOND, nothing, NULL, NULL);
	for (int i = 0; i < 70000; i++)
		if (tw_group_create(&other, small) != 0)
			break;
	CALL(tw_schedule(small, MS, nothing, NULL, &out));
	CALL(tw_schedule_at(small, MS, nothing, NULL, &out));
	CALL(tw_schedule_every(small, PERIOD(.first_ns = MS), nothing, NULL, &out));
	CALL(tw_schedule_task(small, TASK(.when_ns = MS), &out));
	CALL(tw_group_create(&other, small));
	MUST(tw_service_destroy(small));
}

/* No entry of a lane is left for a move to an earlier time. */
static void in_a_full_lane(void)
{
	situation("with a full lane");
	tw_service *small;
	tw_timer one;
	MUST(tw_service_create(&small,
			       STRUCT(tw_service_config, .drive = TW_DRIVE_MANUAL,
				      .lane_entries = 1024, .executor = tw_executor_inline())));
	MUST(tw_schedule(small, 1000 * TW_SECOND, nothing, NULL, &one));
	for (uint64_t i = 0; tw_reset(small, one, (900 * 1000 - i) * MS) == 0; i++) {
	}
	CALL(tw_reset(small, one, TW_SECOND));
	CALL(tw_reset_at(small, one, 0));
	CALL(tw_reset_earlier(small, one, TW_SECOND));
	MUST(tw_service_destroy(small));
}

static void open_service(void)
{
	MUST(tw_clock_manual_create(&clock, TW_SECOND));
	MUST(tw_service_create(&service,
			       STRUCT(tw_service_config, .clock = clock, .drive = TW_DRIVE_MANUAL,
				      .executor = tw_executor_inline())));
	born_ns = tw_service_now(service);
	MUST(tw_group_create(&group, service));
	MUST(tw_schedule(service, 10 * MS, nothing, NULL, &timer));
	MUST(tw_schedule_task(service, TASK(.flags = TW_TASK_PERSISTENT, .when_ns = MS),
			      &persistent));
	MUST(tw_schedule_every(service, PERIOD(.first_ns = TW_SECOND), nothing, NULL, &series));
}

static void end_service(void)
{
	MUST(tw_service_destroy(service));
	MUST(tw_clock_manual_destroy(clock));
}

void timers(void)
{
	open_service();
	bad();
	in_child(calls);
	without_memory(growing_calls);
	MUST(tw_schedule(service, 0, from_the_callback, NULL, NULL));
	MUST(tw_schedule_every(service, PERIOD(.first_ns = 0), from_a_series, NULL, NULL));
	MUST(tw_clock_manual_advance_by(clock, 2 * MS));
	situation("open");
	calls();
	MUST(tw_service_close(service, TW_CLOSE_DROP, 0));
	situation("closed");
	calls();
	end_service();
	of_a_running_timer();
	in_a_full_service();
	in_a_full_lane();
}

void groups(void)
{
	open_service();
	in_child(group_calls);
	situation("open");
	group_calls();
	end_service();
	open_service();
	MUST(tw_service_close(service, TW_CLOSE_DROP, 0));
	situation("closed");
	group_calls();
	end_service();
}
