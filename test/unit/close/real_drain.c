/*
 * A drain is a phase: what is pending may be moved and may arm itself again, what is new is
 * refused. Each service here has a timer that is an hour away, which holds the drain up until the
 * test cancels it.
 */
#include <errno.h>
#include <stdio.h>

#include "test/support/closing.h"
#include "test/support/shot.h"

TestSuite(close_real_drain, .timeout = 60);

static tw_service *service;
static tw_timer holder;
static struct closing drain;

static void never(void *arg)
{
	(void)arg;
}

static void open_held(struct tw_service_config cfg)
{
	cfg.size = sizeof(cfg);
	expect_eq(tw_service_create(&service, &cfg), 0);
	expect_eq(tw_schedule(service, HOUR, never, NULL, &holder), 0);
}

/* Until the service refuses what is new. */
static void begin_drain(void)
{
	tw_group group;
	closing_start(&drain, service, TW_CLOSE_DRAIN, TW_FOREVER);
	while (tw_group_create(&group, service) == 0) {
		expect_eq(tw_group_destroy(service, group), 0);
		sched_yield();
	}
}

static void end_drain(void)
{
	expect_eq(tw_cancel(service, holder), TW_CANCELLED);
	expect_eq(closing_end(&drain), 0);
}

/* A timer that arms itself again a number of times. */
struct again {
	int times;
	uint64_t delay_ns;
	bool only_earlier;
	atomic_int runs, answers, released, fate;
};

static void run_again(void *arg)
{
	struct again *again = arg;
	if (again->runs++ < again->times)
		again->answers |= again->only_earlier
				      ? tw_reset_earlier(service, tw_self(), again->delay_ns)
				      : tw_reset(service, tw_self(), again->delay_ns);
}

static void note_fate(void *arg, enum tw_fate fate)
{
	struct again *again = arg;
	again->fate = (int)fate;
	again->released++;
}

/* Which timer, how often its callback resets it, and what becomes of it in a drain. */
struct row {
	const char *name;
	uint64_t period_ns, count;
	uint32_t flags;
	int times;
	bool only_earlier;
	int runs;
	enum tw_fate fate;
	/* goes on until the last other timer has ended, and is dropped then; perhaps in a run */
	bool stays;
};

static const struct row rows[] = {
    {"one-shot", .runs = 1, .fate = TW_FATE_FIRED},
    {"one-shot, again", .times = 3, .runs = 4, .fate = TW_FATE_FIRED},
    {"background, again", .flags = TW_TASK_BACKGROUND, .times = 3, .runs = 4, TW_FATE_FIRED},
    {"background series", .period_ns = MS, .flags = TW_TASK_BACKGROUND, .runs = 9, .stays = true},
    {"background, far", .flags = TW_TASK_BACKGROUND, .fate = TW_FATE_DROPPED, .stays = true},
    {"series of 5", .period_ns = MS, .count = 5, .runs = 5, .fate = TW_FATE_FIRED},
    {"series of 5, again", .period_ns = MS, .count = 5, .times = 3, .runs = 5, TW_FATE_FIRED},
    {"series of 2, again", .period_ns = MS, .count = 2, .times = 3, .runs = 4, TW_FATE_FIRED},
    {"series", .period_ns = MS, .runs = 1, .fate = TW_FATE_FIRED},
    {"series, again", .period_ns = MS, .times = 3, .runs = 4, .fate = TW_FATE_FIRED},
    {"series, earlier", .period_ns = MS, .times = 3, .only_earlier = true, .runs = 4,
     .fate = TW_FATE_FIRED},
    {"persistent", .flags = TW_TASK_PERSISTENT, .runs = 1, .fate = TW_FATE_DROPPED},
    {"persistent, again", .flags = TW_TASK_PERSISTENT, .times = 3, .runs = 4,
     .fate = TW_FATE_DROPPED},
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

/* An hour away until the drain has begun, then due; its own resets alternate near and now. */
static void drain_rows(struct tw_service_config cfg)
{
	static struct again agains[ROWS];
	tw_timer timers[ROWS];
	open_held(cfg);
	for (int i = 0; i < ROWS; i++) {
		const struct row *row = &rows[i];
		agains[i] = (struct again){.times = row->times,
					   .delay_ns = i % 2 ? MS : 0,
					   .only_earlier = row->only_earlier};
		struct tw_period period = rate_of(HOUR, row->period_ns, row->count);
		struct tw_task task = {.size = sizeof(task),
				       .fn = run_again,
				       .arg = &agains[i],
				       .flags = row->flags,
				       .when_ns = row->period_ns ? 0 : HOUR,
				       .period = row->period_ns ? &period : NULL,
				       .release = note_fate};
		expect_eq(tw_schedule_task(service, &task, &timers[i]), 0);
	}
	begin_drain();
	for (int i = 0; i < ROWS; i++) {
		expect_eq(tw_reset(service, timers[i], 2 * HOUR), 0); /* later */
		if (rows[i].runs)
			expect_eq(tw_reset(service, timers[i], i % 2 ? MS : 0), 0);
	}
	for (int i = 0; i < ROWS; i++)
		while (agains[i].runs < rows[i].runs)
			sched_yield();
	for (int i = 0; i < ROWS; i++)
		expect_eq(rows[i].stays && agains[i].released, false);
	end_drain();
	for (int i = 0; i < ROWS; i++) {
		bool goes_on = rows[i].stays && rows[i].runs;
		expect_eq(agains[i].answers, 0);
		if ((agains[i].runs != rows[i].runs && !goes_on) || agains[i].released != 1 ||
		    (agains[i].fate != (int)rows[i].fate && !goes_on))
			cr_assert_fail("%s: %d runs, %d releases, fate %d", rows[i].name,
				       agains[i].runs, agains[i].released, agains[i].fate);
	}
	expect_eq(tw_service_destroy(service), 0);
}

Test(close_real_drain, lets_timers_go_on_in_a_pool)
{
	drain_rows((struct tw_service_config){.workers = 2});
}

Test(close_real_drain, lets_timers_go_on_on_the_tick_thread)
{
	drain_rows((struct tw_service_config){.executor = tw_executor_inline()});
}

Test(close_real_drain, lets_timers_go_on_in_a_manual_drive)
{
	drain_rows(
	    (struct tw_service_config){.executor = tw_executor_inline(), .drive = TW_DRIVE_MANUAL});
}

/* A disarmed timer is not pending: to arm it is new work. */
Test(close_real_drain, refuses_what_is_new)
{
	open_held((struct tw_service_config){.workers = 1});
	tw_timer disarmed, out = {.id = 1};
	struct tw_task task = {
	    .size = sizeof(task), .fn = never, .when_ns = TW_NEVER, .flags = TW_TASK_PERSISTENT};
	expect_eq(tw_schedule_task(service, &task, &disarmed), 0);
	begin_drain();
	expect_eq(tw_schedule(service, 0, never, NULL, &out), -ESHUTDOWN);
	expect_eq(out.id, 0);
	expect_eq(tw_reset(service, disarmed, 0), -ESHUTDOWN);
	expect_eq(tw_reset_earlier(service, disarmed, 0), -ESHUTDOWN);
	expect_eq(tw_reset(service, (tw_timer){0}, 0), -ENOENT);
	expect_eq(tw_disarm(service, disarmed), TW_DISARMED);
	end_drain();
	expect_eq(tw_reset(service, holder, 0), -ESHUTDOWN);
	expect_eq(tw_service_destroy(service), 0);
}

/* The mode falls under a timer that would go on for as long as it may. */
static void expect_ends_at(enum tw_close_mode mode)
{
	struct again again = {.times = INT32_MAX};
	open_held((struct tw_service_config){.workers = 1});
	expect_eq(tw_schedule(service, 0, run_again, &again, NULL), 0);
	begin_drain();
	for (int seen = again.runs; again.runs < seen + 3;)
		sched_yield();
	expect_eq(tw_service_close(service, mode, TW_FOREVER), 0);
	expect_eq(closing_end(&drain), 0);
	expect_eq(tw_reset(service, holder, 0), -ESHUTDOWN);
	struct tw_service_stats stats = stats_of(service);
	expect_eq(stats.pending, 0);
	expect_eq(stats.fired + stats.dropped, 2);
	expect_eq(tw_service_destroy(service), 0);
}

Test(close_real_drain, ends_with_a_lower_mode)
{
	expect_ends_at(TW_CLOSE_RUN);
	expect_ends_at(TW_CLOSE_DROP);
}

/* With its timeout a drain becomes a drop. What arms itself without end ends there. */
Test(close_real_drain, ends_with_its_timeout)
{
	for (int round = 0; round < 20; round++) {
		struct again again = {.times = INT32_MAX};
		open_held((struct tw_service_config){.workers = 1});
		expect_eq(tw_schedule(service, 0, run_again, &again, NULL), 0);
		while (tw_service_close(service, TW_CLOSE_DRAIN, MS) == -ETIMEDOUT)
			expect_eq(stats_of(service).pending, 0);
		int runs = again.runs;
		expect_eq(stats_of(service).pending, 0);
		expect_eq(tw_service_destroy(service), 0);
		expect_eq(again.runs, runs);
	}
}
