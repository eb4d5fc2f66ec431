/*
 * A drain on the real clock: background timers go on until the last other timer has ended, and are
 * dropped then.
 */
#include <sched.h>

#include "test/support/shot.h"

TestSuite(timer_real_background, .timeout = 60);

static struct {
	tw_service *service;
	sem_t beats; /* one for each run of the heartbeat */
	atomic_bool other_has_ended;
	atomic_int beat_releases;
	atomic_int idle_fate, idle_releases;
	atomic_bool idle_ended_last;
} seen;

static void beat(void *arg)
{
	(void)arg;
	sem_post(&seen.beats);
}

static void beat_ends(void *arg, enum tw_fate fate)
{
	(void)arg, (void)fate; /* dropped, or fired if it was in a run */
	seen.beat_releases++;
}

static void never(void *arg)
{
	(void)arg;
}

static void idle_ends(void *arg, enum tw_fate fate)
{
	(void)arg;
	seen.idle_ended_last = seen.other_has_ended;
	seen.idle_fate = (int)fate;
	seen.idle_releases++;
}

/* It runs until the service closes, and then until the heartbeat has come three more times. */
static void hold_up_the_drain(void *arg)
{
	(void)arg;
	tw_group group;
	while (tw_group_create(&group, seen.service) == 0) {
		tw_group_destroy(seen.service, group);
		sched_yield();
	}
	while (sem_trywait(&seen.beats) == 0) {
	}
	await(&seen.beats, 3);
	seen.other_has_ended = true;
}

Test(timer_real_background, goes_on_until_the_last_other_timer_has_ended)
{
	sem_init(&seen.beats, 0, 0);
	seen.service = open_service(2);
	struct tw_period period = {.size = sizeof(period), .period_ns = 2 * MS};
	struct tw_task heartbeat = {.size = sizeof(heartbeat),
				    .fn = beat,
				    .flags = TW_TASK_BACKGROUND,
				    .period = &period,
				    .release = beat_ends};
	struct tw_task idle = {.size = sizeof(idle),
			       .fn = never,
			       .flags = TW_TASK_BACKGROUND,
			       .when_ns = HOUR,
			       .release = idle_ends};
	expect_eq(tw_schedule_task(seen.service, &heartbeat, NULL), 0);
	expect_eq(tw_schedule_task(seen.service, &idle, NULL), 0);
	expect_eq(tw_schedule(seen.service, MS, hold_up_the_drain, NULL, NULL), 0);
	await(&seen.beats, 3); /* all is under way */
	expect_eq(tw_service_close(seen.service, TW_CLOSE_DRAIN, TW_FOREVER), 0);
	expect_eq(seen.other_has_ended, true);
	expect_eq(seen.idle_ended_last, true);
	expect_eq(seen.idle_fate, TW_FATE_DROPPED);
	expect_eq(seen.idle_releases, 1);
	expect_eq(seen.beat_releases, 1);
	expect_eq(tw_service_destroy(seen.service), 0);
}
