/*
 * Each request for memory, address space or a thread fails, one after the other. The call fails
 * with its documented error, nothing is left behind, and all timers keep their fate.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/support/faults.h"
#include "test/support/rig_suite.h"
#include "test/support/threads.h"

TestSuite(faults_service, .init = open_rig, .fini = close_rig, .timeout = 60);

#define CONFIG(...) \
	(&(struct tw_service_config){.size = sizeof(struct tw_service_config), __VA_ARGS__})
#define BY_HAND CONFIG(.drive = TW_DRIVE_MANUAL, .executor = tw_executor_inline())

static _Atomic unsigned runs;

static void count_run(void *arg)
{
	runs++;
}

/* `make faults` shows what was refused, and what came of it. */
static void tell(const char *where, long nth, int outcome)
{
	if (getenv("FAULTS_LIST"))
		printf("%s: request %ld (%s) refused: %s\n", where, nth, faults_refused(),
		       strerrorname_np(-outcome));
}

/*
 * Creates with the n-th request refused, for every n; the last try is refused nothing and succeeds.
 */
static void refuse_each_in_turn(const char *where, const struct tw_service_config *config)
{
	/* a thread's record of what it runs is the process's: the first tick thread makes it */
	tw_service *first;
	expect_eq(tw_service_create(&first, config), 0);
	expect_eq(tw_service_destroy(first), 0);
	for (long nth = 0;; nth++) {
		tw_service *service = NULL;
		long before = faults_outstanding();
		faults_arm(nth, false);
		int r = tw_service_create(&service, config);
		bool refused = faults_disarm();
		if (!refused) {
			expect_eq(r, 0);
			cr_assert(nth > 3, "only %ld requests were made", nth);
			expect_eq(tw_service_destroy(service), 0);
			cr_assert_eq(faults_outstanding(), before, "destroy left %ld behind",
				     faults_outstanding() - before);
			return;
		}
		tell(where, nth, r);
		bool descriptor = r == -EMFILE || r == -ENOSPC;
		cr_assert(r == -ENOMEM || r == -EAGAIN || (descriptor && config->clock),
			  "request %ld refused: %s", nth, strerror(-r));
		cr_assert_null(service, "an error and a service");
		cr_assert_eq(faults_outstanding(), before, "request %ld refused: %ld left behind",
			     nth, faults_outstanding() - before);
	}
}

/*
 * The thread's own tie to a service is freed when it next meets one, so each test begins by meeting
 * one.
 */
static void meet_a_service(void)
{
	tw_service *service;
	tw_timer timer;
	expect_eq(tw_service_create(&service, BY_HAND), 0);
	expect_eq(tw_schedule(service, 0, count_run, NULL, &timer), 0);
	expect_eq(tw_service_destroy(service), 0);
}

Test(faults_service, creates)
{
	meet_a_service();
	refuse_each_in_turn("create with a tick thread and a pool", CONFIG(.workers = 3));
	refuse_each_in_turn("create with manual drive", BY_HAND);
	refuse_each_in_turn("create on a clock with a descriptor",
			    CONFIG(.workers = 1, .clock = tw_clock_boottime()));
}

Test(faults_service, create_of_a_pool)
{
	struct tw_pool_config config = {.size = sizeof config, .workers = 3, .queue = 16};
	for (long nth = 0;; nth++) {
		tw_pool *pool = NULL;
		long before = faults_outstanding();
		faults_arm(nth, false);
		int r = tw_pool_create(&pool, &config);
		if (!faults_disarm()) {
			expect_eq(r, 0);
			cr_assert(nth > 3);
			expect_eq(tw_pool_close(pool, TW_CLOSE_DRAIN, NULL, NULL), 0);
			expect_eq(tw_pool_destroy(pool), 0);
			return;
		}
		tell("create of a pool", nth, r);
		cr_assert(r == -ENOMEM || r == -EAGAIN);
		cr_assert_null(pool);
		cr_assert_eq(faults_outstanding(), before,
			     "request %ld refused: something is left behind", nth);
	}
}

Test(faults_service, descriptor_of_a_loop)
{
	meet_a_service();
	tw_service *service;
	expect_eq(tw_service_create(&service, BY_HAND), 0);
	long nth = 0;
	for (int before = descriptors_open();; nth++) {
		expect_eq(descriptors_open(), before);
		faults_arm(nth, false);
		int r = tw_service_fd(service);
		if (!faults_disarm()) {
			cr_assert(r >= 0);
			break;
		}
		tell("tw_service_fd", nth, r);
		cr_assert(r == -EMFILE || r == -ENOSPC || r == -ENOMEM, "%s", strerror(-r));
	}
	cr_assert(nth >= 5, "epoll, timer, event, and two that are watched: %ld", nth);
	expect_eq(tw_service_destroy(service), 0);
}

/*
 * The first schedule of a thread: each of its requests fails, one after the other; then it works.
 */
Test(faults_service, first_schedule_of_a_thread)
{
	tw_timer timer;
	long nth = 0;
	for (;; nth++) {
		faults_arm(nth, false);
		int r = tw_schedule(rig.service, 1, count_run, NULL, &timer);
		if (!faults_disarm()) {
			expect_eq(r, 0);
			break;
		}
		expect_eq(r, -ENOMEM);
		expect_eq(timer.id, 0);
		expect_eq(stats_of(rig.service).pending, 0u);
	}
	cr_assert(nth >= 3);
	rig_advance(&rig, MS);
	expect_eq(runs, 1u);
}

/*
 * No memory for another segment: refused, nothing lost; what was accepted runs, and what was
 * cancelled does not.
 */
Test(faults_service, schedule_when_its_lane_cannot_grow)
{
	unsigned accepted = 0;
	int r;
	expect_eq(tw_schedule(rig.service, MS, count_run, NULL, NULL), 0);
	faults_arm(0, true);
	while ((r = tw_schedule(rig.service, MS, count_run, NULL, NULL)) == 0)
		accepted++;
	expect_eq(r, -ENOMEM);
	expect_eq(tw_schedule(rig.service, MS, count_run, NULL, NULL), -ENOMEM);
	faults_disarm();
	expect_sound(rig.service);
	expect_eq(stats_of(rig.service).pending, accepted + 1);
	rig_advance(&rig, 2 * MS);
	expect_eq(runs, accepted + 1);
	expect_eq(tw_schedule(rig.service, MS, count_run, NULL, NULL), 0);
	expect_sound(rig.service);
}

/* A reset to earlier needs room for an entry: refused, the timer stays where it was. */
Test(faults_service, reset_to_earlier_when_its_lane_cannot_grow)
{
	tw_timer timer;
	expect_eq(tw_schedule(rig.service, SECOND, count_run, NULL, &timer), 0);
	rig_advance(&rig, 0);
	faults_arm(0, true);
	while (tw_schedule(rig.service, SECOND * 9, count_run, NULL, NULL) == 0)
		;
	int r;
	uint64_t delay_ns = SECOND; /* what room is left in the segment is used up first */
	while ((r = tw_reset(rig.service, timer, delay_ns - MS)) == 0)
		delay_ns -= MS;
	faults_disarm();
	expect_eq(r, -ENOMEM);
	uint64_t left_ns;
	expect_eq(tw_remaining(rig.service, timer, &left_ns), 0);
	expect_eq(left_ns, delay_ns);
	expect_eq(tw_cancel(rig.service, timer), TW_CANCELLED);
	expect_sound(rig.service);
}

static void again(void *arg)
{
	count_run(arg);
	expect_eq(tw_reset(rig.service, tw_self(), MS), 0);
}

/* Re-arming, and a series, need no memory that was not there before the run was claimed. */
Test(faults_service, rearming_without_memory)
{
	struct tw_period period = {.size = sizeof period, .first_ns = MS, .period_ns = MS};
	expect_eq(tw_schedule(rig.service, MS, again, NULL, NULL), 0);
	expect_eq(tw_schedule_every(rig.service, &period, count_run, NULL, NULL), 0);
	rig_advance(&rig, MS);
	faults_arm(0, true);
	rig_advance(&rig, 5 * SECOND);
	faults_disarm();
	expect_eq(runs, 2 * 5001u);
	expect_sound(rig.service);
}

/*
 * A service's first group: its request refused, nothing is left behind and the next try works.
 * Later ones, members and cancels ask for nothing.
 */
Test(faults_service, groups)
{
	tw_group group = {7}, second;
	expect_eq(tw_schedule(rig.service, 0, count_run, NULL, NULL), 0);
	rig_advance(&rig, MS); /* this thread has all that it needs to run callbacks */
	expect_eq(runs, 1u);
	long before = faults_outstanding();
	faults_arm(0, false);
	expect_eq(tw_group_create(&group, rig.service), -ENOMEM);
	cr_assert(faults_disarm());
	expect_eq(group.id, 7u);
	expect_eq(faults_outstanding(), before);
	expect_eq(tw_group_create(&group, rig.service), 0);
	faults_arm(0, true);
	expect_eq(tw_group_create(&second, rig.service), 0);
	for (int i = 0; i < 50; i++) {
		struct tw_task task = {.size = sizeof task,
				       .fn = count_run,
				       .when_ns = MS,
				       .group = i % 2 ? group : second};
		expect_eq(tw_schedule_task(rig.service, &task, NULL), 0);
	}
	expect_eq(tw_group_cancel(rig.service, group), 0);
	expect_eq(tw_group_destroy(rig.service, second), 0);
	rig_advance(&rig, 2 * MS);
	cr_assert_not(faults_disarm(), "groups asked for memory");
	expect_eq(runs, 1u);
	expect_eq(stats_of(rig.service).cancelled, 50u);
	expect_sound(rig.service);
}
