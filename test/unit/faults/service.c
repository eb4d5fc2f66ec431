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
#include "test/support/timer_script.h"

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

static const struct script scripts[] = {
    /* each accepted timer runs */
    {"a schedule when its lane cannot grow",
     {{"given mapped; timer 0 in=1 plain; no_memory; fill; timer 1 in=1; timer 2 in=1 plain; "
       "memory; validate",
       "ENOMEM, ENOMEM"},
      {"drive 1; timer 2 in=1 plain; drive 1; validate", "@1 run 0, @2 run 2"}}},
    /* the timer stays where it was, when what room is left in the segment is used up */
    {"a reset to earlier when its lane cannot grow",
     {{"given mapped; timer 0 in=1000 plain; drive 0; no_memory; fill; reset 0 by=900; reset 0 "
       "by=800",
       "ENOMEM"},
      {"reset 0 by=700; memory; left 0; cancel 0; validate", "ENOMEM, left 900, CANCELLED"}}},
    {"a run that arms its timer again, and a series, ask for nothing",
     {{"timer 0 in=1 plain silent times=90 {reset 0 by=1}; timer 1 first=1 every=1 plain silent",
       ""},
      {"drive 1; no_memory; drive 89; unasked; stats runs; validate", "@90 runs=180"}}},
    /* the thread has all that it needs to run callbacks */
    {"the first group of a service asks; later ones, members and cancels do not",
     {{"timer 0 in=0 plain; drive 1; no_memory; group 0; memory; group 0; no_memory; group 1",
       "run 0, @1 ENOMEM"},
      {"timer 1..20 in=1 plain group=0; timer 21..40 in=1 plain group=1; group_cancel 0", ""},
      {"group_destroy 1; drive 2; unasked; stats runs cancelled; validate",
       "@3 runs=1, cancelled=40"}}},
};

Test(faults_service, follows_the_scripts)
{
	PLAY(&timer_stage, NULL, scripts);
}
