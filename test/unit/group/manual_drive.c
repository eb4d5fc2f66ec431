/*
 * A manual drive beside groups, executors of single timers, and bursts: each call ends, and polls
 * call completions.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "test/support/members.h"
#include "test/support/rig_suite.h"
#include "test/support/timer_script.h"

TestSuite(group_manual_drive, .init = open_rig, .fini = close_rig, .timeout = 60);

enum { FOR_EVER = -1 };

static bool readable(int fd, int timeout_ms)
{
	struct pollfd watched = {.fd = fd, .events = POLLIN};
	return poll(&watched, 1, timeout_ms) == 1 && watched.revents == POLLIN;
}

/* By hand, on the real clock. */
static void open_by_hand(struct rig *hand)
{
	struct tw_service_config cfg = {
	    .size = sizeof(cfg), .drive = TW_DRIVE_MANUAL, .executor = tw_executor_inline()};
	*hand = (struct rig){.lock = PTHREAD_MUTEX_INITIALIZER, .clock = tw_clock_monotonic()};
	expect_eq(tw_service_create(&hand->service, &cfg), 0);
}

struct ending {
	tw_service *service;
	tw_group group;
	atomic_int calls;
	int answer;
};

static void complete(void *arg)
{
	struct ending *ending = arg;
	ending->calls++;
}

static void *end_group(void *arg)
{
	struct ending *ending = arg;
	ending->answer = tw_group_close_then(ending->service, ending->group, complete, ending);
	return NULL;
}

static void end_from_another_thread(struct ending *ending)
{
	pthread_t thread;
	expect_eq(pthread_create(&thread, NULL, end_group, ending), 0);
	pthread_join(thread, NULL);
	expect_eq(ending->answer, 0);
}

/* The members end inside the call. The loop learns of the completion from its descriptor alone. */
static void end_wakes_loop(int members)
{
	struct rig hand;
	open_by_hand(&hand);
	struct ending ending = {.service = hand.service, .group = group_of(&hand)};
	struct probe *probes = calloc((size_t)members + 1, sizeof(*probes));
	for (int i = 0; i < members; i++) {
		probes[i] = PROBE(&hand, i);
		expect_eq(schedule_in(&probes[i], ending.group, HOUR, true), 0);
	}
	int fd = tw_service_fd(hand.service);
	expect_ge(fd, 0);
	while (readable(fd, 0))
		expect_eq(tw_service_advance(hand.service, TW_NO_LIMIT), 0);
	end_from_another_thread(&ending);
	for (int i = 0; i < members; i++)
		expect_released(&probes[i], TW_FATE_CANCELLED);
	while (!ending.calls) {
		expect_eq(readable(fd, FOR_EVER), true);
		expect_ge(tw_service_advance(hand.service, TW_NO_LIMIT), 0);
	}
	expect_eq(hand.ran, 0);
	for (int turns = 0; turns < 100 && readable(fd, 20); turns++)
		expect_ge(tw_service_advance(hand.service, TW_NO_LIMIT), 0);
	expect_eq(readable(fd, 100), false); /* the loop may sleep */
	expect_sound(hand.service);
	expect_eq(tw_service_destroy(hand.service), 0);
	free(probes);
}

Test(group_manual_drive, a_completion_makes_the_descriptor_readable)
{
	end_wakes_loop(0);
	end_wakes_loop(1);
	end_wakes_loop(3000);
}

/* ------------------------------------------------------------ bursts */

/*
 * With a period far below the tick, a tick's worth of instants in each tick of a clock's advance.
 */
Test(group_manual_drive, a_clocks_advance_ends_with_a_burst_of_a_tiny_period)
{
	tw_group group = group_of(&rig);
	struct probe series = PROBE(&rig, 1);
	struct tw_period burst = rate_of(MS, 100, 0); /* ten thousand instants a tick */
	burst.missed = TW_MISSED_BURST;
	expect_eq(schedule_series_in(&series, group, burst), 0);
	rig_advance(&rig, 20 * MS);
	int runs = series.runs;
	expect_ge(runs, 20);
	expect_eq(tw_group_close(rig.service, group), 0);
	rig_advance(&rig, MS);
	expect_eq(series.runs, runs);
	expect_released(&series, TW_FATE_CANCELLED);
}

static const struct script scripts[] = {
    {"ends though a member's own executor refuses, until its group is cancelled",
     {{"group 0; refuse -1; timer 0 in=1 other group=0; timer 1 first=0 every=1 burst other "
       "group=0",
       ""},
      {"timer 2 in=10 group=0; drive 5; poll; poll; drive 5; members 0; waiting",
       "@10 run 2, 2 fired, members=2, 0 wait"},
      {"group_cancel 0; drive 2; waiting", "0 cancelled, 1 cancelled, @12 0 wait"}}},
    {"ends though a burst falls ever further behind",
     {{"group 0; timer 0 first=1 every=1 burst stays=3 group=0; pass 10; poll",
       "@10 run 0 late=9, @13 1"},
      {"poll; poll", "run 0 late=11, @16 1, run 0 late=13, @19 1"},
      {"group_cancel 0; poll", "0 cancelled"}}},
};

Test(group_manual_drive, follows_the_scripts)
{
	PLAY(&timer_stage, NULL, scripts);
}
