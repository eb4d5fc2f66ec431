/*
 * Fork, and what is not in memory alone: descriptors, which a child shares with its parent, and the
 * default clock.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "test/support/by_hand.h"
#include "test/support/child.h"
#include "test/support/inherited.h"
#include "test/support/rig.h"
#include "test/support/threads.h"

TestSuite(fork_loop, .timeout = 60);

static void count(void *arg)
{
	++*(atomic_int *)arg;
}

/* ------------------------------------------------------------ descriptors */

struct open_loop {
	tw_service *service;
	tw_timer timer;
	int fd;
};

static void leave_loop(void *arg)
{
	struct open_loop *in = arg;
	check_calls(in->service, in->timer);
	int before = descriptors_open();
	child_eq(tw_service_destroy(in->service), 0);
	child_eq(before - descriptors_open(), 3);
}

/* The parent's descriptor knows of its timer still, and of other threads' pushes. */
Test(fork_loop, a_child_closes_its_descriptors_and_moves_nothing)
{
	tw_service *service = open_by_hand(NULL);
	struct open_loop in = {.service = service, .fd = tw_service_fd(service)};
	atomic_int runs = 0;
	expect_ge(in.fd, 0);
	expect_eq(tw_schedule(service, 300 * MS, count, &runs, &in.timer), 0);
	expect_eq(tw_service_advance(service, TW_NO_LIMIT), 0);
	expect_in_child(leave_loop, &in);
	expect_eq(readable(in.fd, -1), true);
	while (!runs)
		expect_ge(tw_service_advance(service, TW_NO_LIMIT), 0);
	expect_eq(tw_schedule(service, 0, count, &runs, NULL), 0);
	expect_eq(readable(in.fd, -1), true);
	expect_eq(tw_service_destroy(service), 0);
}

static void leave_service(void *arg)
{
	int before = descriptors_open();
	child_eq(tw_service_destroy(arg), 0);
	child_eq(before - descriptors_open(), 3);
	check_own_service();
}

Test(fork_loop, a_tick_thread_on_boottime_is_not_disturbed)
{
	struct tw_service_config cfg = {
	    .size = sizeof(cfg), .executor = tw_executor_inline(), .clock = tw_clock_boottime()};
	tw_service *service;
	atomic_int runs = 0;
	expect_eq(tw_service_create(&service, &cfg), 0);
	expect_in_child(leave_service, service);
	expect_eq(tw_schedule(service, MS, count, &runs, NULL), 0);
	expect_eq(tw_service_close(service, TW_CLOSE_DRAIN, TW_FOREVER), 0);
	expect_eq(runs, 1);
	expect_eq(tw_service_destroy(service), 0);
}

/* ------------------------------------------------------------ the default clock */

static void use_default(void *arg)
{
	tw_clock *parents = arg;
	tw_service *service = NULL;
	struct tw_service_config cfg = {
	    .size = sizeof(cfg), .drive = TW_DRIVE_MANUAL, .clock = parents};
	child_eq(tw_service_create(&service, &cfg), -EPERM);
	child_eq(service == NULL, 1);
	child_eq(tw_clock_set_default(parents), -EPERM);
	child_eq(tw_clock_set_default(tw_clock_boottime()), 0); /* no service of this process yet */
	child_eq(tw_clock_set_default(NULL), 0);
	check_own_service();
	child_eq(tw_clock_set_default(NULL), -EBUSY);
}

static void use_unmoved_default(void *arg)
{
	check_own_service(); /* time goes on */
}

/* The child frees the clock, and something else lies there. */
static void free_default(void *clock)
{
	child_eq(tw_clock_manual_destroy(clock), 0);
	for (size_t bytes = 32; bytes <= 512; bytes += 16)
		memset(malloc(bytes), 0xff, bytes);
	check_own_service();
}

Test(fork_loop, a_child_may_free_the_clock_that_was_the_default)
{
	tw_clock *clock;
	expect_eq(tw_clock_manual_create(&clock, SECOND), 0);
	expect_eq(tw_clock_set_default(clock), 0);
	expect_in_child(free_default, clock);
	expect_eq(tw_clock_set_default(NULL), 0);
	expect_eq(tw_clock_manual_destroy(clock), 0);
}

Test(fork_loop, the_parents_manual_clock_is_no_default_of_a_child)
{
	tw_clock *clock;
	expect_eq(tw_clock_manual_create(&clock, SECOND), 0);
	expect_eq(tw_clock_set_default(clock), 0);
	tw_service *service = open_by_hand(NULL);
	expect_eq(tw_service_now(service), SECOND);
	expect_amid_locks(service, use_default, clock);
	expect_amid_locks(service, use_unmoved_default, NULL);
	expect_eq(tw_clock_set_default(NULL), -EBUSY);
	expect_eq(tw_service_destroy(service), 0);
	expect_eq(tw_clock_manual_destroy(clock), 0);
}
