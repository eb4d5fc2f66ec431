/*
 * Each request for memory, address space or a thread fails, one after the other. The call fails
 * with its documented error, nothing is left behind, and all timers keep their fate.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/support/faults.h"
#include "tickwheel.h"

static _Atomic unsigned runs;

static void count_run(void *arg)
{
	(void)arg;
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
	cr_assert_eq(tw_service_create(&first, config), 0);
	cr_assert_eq(tw_service_destroy(first), 0);
	for (long nth = 0;; nth++) {
		tw_service *service = NULL;
		long before = faults_outstanding();
		faults_arm(nth, false);
		int r = tw_service_create(&service, config);
		bool refused = faults_disarm();
		if (!refused) {
			cr_assert_eq(r, 0);
			cr_assert(nth > 3, "only %ld requests were made", nth);
			cr_assert_eq(tw_service_destroy(service), 0);
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
	cr_assert_eq(
	    tw_service_create(&service,
			      &(struct tw_service_config){.size = sizeof(struct tw_service_config),
							  .drive = TW_DRIVE_MANUAL,
							  .executor = tw_executor_inline()}),
	    0);
	cr_assert_eq(tw_schedule(service, 0, count_run, NULL, &timer), 0);
	cr_assert_eq(tw_service_destroy(service), 0);
}

Test(faults_service, create_with_a_tick_thread_and_a_pool)
{
	meet_a_service();
	refuse_each_in_turn(
	    "create with a tick thread",
	    &(struct tw_service_config){.size = sizeof(struct tw_service_config), .workers = 3});
}

Test(faults_service, create_with_manual_drive)
{
	meet_a_service();
	refuse_each_in_turn("create with manual drive",
			    &(struct tw_service_config){.size = sizeof(struct tw_service_config),
							.drive = TW_DRIVE_MANUAL,
							.executor = tw_executor_inline()});
}

Test(faults_service, create_with_a_tick_thread_that_sleeps_on_a_descriptor)
{
	meet_a_service();
	refuse_each_in_turn("create on boottime",
			    &(struct tw_service_config){.size = sizeof(struct tw_service_config),
							.workers = 1,
							.clock = tw_clock_boottime()});
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
			cr_assert_eq(r, 0);
			cr_assert(nth > 3);
			cr_assert_eq(tw_pool_close(pool, TW_CLOSE_DRAIN, NULL, NULL), 0);
			cr_assert_eq(tw_pool_destroy(pool), 0);
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
	struct tw_service_config config = {
	    .size = sizeof config, .drive = TW_DRIVE_MANUAL, .executor = tw_executor_inline()};
	tw_service *service;
	cr_assert_eq(tw_service_create(&service, &config), 0);
	long nth = 0;
	for (;; nth++) {
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
	cr_assert_eq(tw_service_destroy(service), 0);
}

Test(faults_service, create_of_a_manual_clock)
{
	tw_clock *clock = NULL;
	faults_arm(0, false);
	cr_assert_eq(tw_clock_manual_create(&clock, 0), -ENOMEM);
	faults_disarm();
	cr_assert_null(clock);
}

static tw_service *driven_by_hand(tw_clock **clock)
{
	tw_service *service;
	cr_assert_eq(tw_clock_manual_create(clock, 0), 0);
	cr_assert_eq(
	    tw_service_create(&service,
			      &(struct tw_service_config){.size = sizeof(struct tw_service_config),
							  .drive = TW_DRIVE_MANUAL,
							  .clock = *clock,
							  .executor = tw_executor_inline()}),
	    0);
	return service;
}

static struct tw_service_stats stats_of(tw_service *service)
{
	struct tw_service_stats stats = {.size = sizeof stats};
	cr_assert_eq(tw_service_stats(service, &stats), 0);
	return stats;
}

static void check_valid(tw_service *service)
{
	char why[128] = "";
	cr_assert_eq(tw_service_validate(service, why, sizeof why), 0, "%s", why);
}

/*
 * The first schedule of a thread: each of its requests fails, one after the other; then it works.
 */
Test(faults_service, first_schedule_of_a_thread)
{
	tw_clock *clock;
	tw_service *service = driven_by_hand(&clock);
	tw_timer timer;
	long nth = 0;
	for (;; nth++) {
		faults_arm(nth, false);
		int r = tw_schedule(service, 1, count_run, NULL, &timer);
		if (!faults_disarm()) {
			cr_assert_eq(r, 0);
			break;
		}
		cr_assert_eq(r, -ENOMEM);
		cr_assert_eq(timer.id, 0);
		cr_assert_eq(stats_of(service).pending, 0u);
	}
	cr_assert(nth >= 3);
	cr_assert_eq(tw_clock_manual_advance_by(clock, TW_MILLISECOND), 0);
	cr_assert_eq(runs, 1u);
	tw_service_destroy(service);
	tw_clock_manual_destroy(clock);
}

/*
 * No memory for another segment: refused, nothing lost; what was accepted runs, and what was
 * cancelled does not.
 */
Test(faults_service, schedule_when_its_lane_cannot_grow)
{
	tw_clock *clock;
	tw_service *service = driven_by_hand(&clock);
	unsigned accepted = 0;
	int r;
	cr_assert_eq(tw_schedule(service, TW_MILLISECOND, count_run, NULL, NULL), 0);
	faults_arm(0, true);
	while ((r = tw_schedule(service, TW_MILLISECOND, count_run, NULL, NULL)) == 0)
		accepted++;
	cr_assert_eq(r, -ENOMEM);
	cr_assert_eq(tw_schedule(service, TW_MILLISECOND, count_run, NULL, NULL), -ENOMEM,
		     "refused again");
	faults_disarm();
	check_valid(service);
	cr_assert_eq(stats_of(service).pending, accepted + 1);
	cr_assert_eq(tw_clock_manual_advance_by(clock, 2 * TW_MILLISECOND), 0);
	cr_assert_eq(runs, accepted + 1);
	cr_assert_eq(tw_schedule(service, TW_MILLISECOND, count_run, NULL, NULL), 0);
	check_valid(service);
	tw_service_destroy(service);
	tw_clock_manual_destroy(clock);
}

/* A reset to earlier needs room for an entry: refused, the timer stays where it was. */
Test(faults_service, reset_to_earlier_when_its_lane_cannot_grow)
{
	tw_clock *clock;
	tw_service *service = driven_by_hand(&clock);
	tw_timer timer;
	cr_assert_eq(tw_schedule(service, TW_SECOND, count_run, NULL, &timer), 0);
	cr_assert_eq(tw_clock_manual_advance_by(clock, 0), 0);
	faults_arm(0, true);
	while (tw_schedule(service, TW_SECOND * 9, count_run, NULL, NULL) == 0)
		;
	int r;
	uint64_t delay_ns = TW_SECOND / 2; /* what room is left in the segment is used up first */
	while ((r = tw_reset(service, timer, delay_ns)) == 0)
		delay_ns -= TW_MILLISECOND;
	faults_disarm();
	cr_assert_eq(r, -ENOMEM);
	uint64_t left_ns;
	cr_assert_eq(tw_remaining(service, timer, &left_ns), 0);
	cr_assert_eq(left_ns, delay_ns + TW_MILLISECOND);
	cr_assert_eq(tw_cancel(service, timer), TW_CANCELLED);
	check_valid(service);
	tw_service_destroy(service);
	tw_clock_manual_destroy(clock);
}

static void again(void *arg)
{
	tw_service *service = arg;
	runs++;
	cr_assert_eq(tw_reset(service, tw_self(), TW_MILLISECOND), 0);
}

/* Re-arming, and a series, need no memory that was not there before the run was claimed. */
Test(faults_service, rearming_without_memory)
{
	tw_clock *clock;
	tw_service *service = driven_by_hand(&clock);
	struct tw_period period = {
	    .size = sizeof period, .first_ns = TW_MILLISECOND, .period_ns = TW_MILLISECOND};
	cr_assert_eq(tw_schedule(service, TW_MILLISECOND, again, service, NULL), 0);
	cr_assert_eq(tw_schedule_every(service, &period, count_run, NULL, NULL), 0);
	cr_assert_eq(tw_clock_manual_advance_by(clock, TW_MILLISECOND), 0);
	faults_arm(0, true);
	cr_assert_eq(tw_clock_manual_advance_by(clock, 5 * TW_SECOND), 0);
	faults_disarm();
	cr_assert_eq(runs, 2 * 5001u);
	check_valid(service);
	tw_service_destroy(service);
	tw_clock_manual_destroy(clock);
}

/*
 * A service's first group: its request refused, nothing is left behind and the next try works.
 * Later ones, members and cancels ask for nothing.
 */
Test(faults_service, groups)
{
	tw_clock *clock;
	tw_service *service = driven_by_hand(&clock);
	tw_group group = {7}, second;
	cr_assert_eq(tw_schedule(service, 0, count_run, NULL, NULL), 0);
	cr_assert_eq(tw_clock_manual_advance_by(clock, TW_MILLISECOND),
		     0); /* this thread has all that it needs to run callbacks */
	cr_assert_eq(runs, 1u);
	long before = faults_outstanding();
	faults_arm(0, false);
	cr_assert_eq(tw_group_create(&group, service), -ENOMEM);
	cr_assert(faults_disarm());
	cr_assert_eq(group.id, 7u);
	cr_assert_eq(faults_outstanding(), before);
	cr_assert_eq(tw_group_create(&group, service), 0);
	faults_arm(0, true);
	cr_assert_eq(tw_group_create(&second, service), 0);
	for (int i = 0; i < 50; i++) {
		struct tw_task task = {.size = sizeof task,
				       .fn = count_run,
				       .when_ns = TW_MILLISECOND,
				       .group = i % 2 ? group : second};
		cr_assert_eq(tw_schedule_task(service, &task, NULL), 0);
	}
	cr_assert_eq(tw_group_cancel(service, group), 0);
	cr_assert_eq(tw_group_destroy(service, second), 0);
	cr_assert_eq(tw_clock_manual_advance_by(clock, 2 * TW_MILLISECOND), 0);
	cr_assert_not(faults_disarm(), "groups asked for memory");
	cr_assert_eq(runs, 1u);
	cr_assert_eq(stats_of(service).cancelled, 50u);
	check_valid(service);
	cr_assert_eq(tw_service_destroy(service), 0);
	tw_clock_manual_destroy(clock);
}
