/* Strands on a running clock: the order of delayed tasks, and what runs on the tick thread. */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>

#include "test/support/shot.h"

TestSuite(strand_real_time, .timeout = 60);

/* ------------------------------------------------------------- on the tick thread */

enum { TIMERS = 1 << 16 };

struct on_driver {
	tw_service *service;
	tw_strand *strands[2];
	tw_scheduler *scheduler;
	tw_timer *timers;
	int filled;
	int submitted, posted;
	atomic_int answer;
};

static void never(void *arg)
{
}

static int never_turn(struct tw_turn *turn, void *arg)
{
	return TW_TURN_DONE;
}

static void destroy_scheduler(void *arg)
{
	struct on_driver *on = arg;
	on->answer = tw_scheduler_destroy(on->scheduler);
}

/* The work that destroys the scheduler is the driver's. A task that needs a timer finds no room. */
static void make_ready(void *arg)
{
	struct on_driver *on = arg;
	const struct tw_scheduler_task post = {
	    .size = sizeof post, .fn = never_turn, .delay_ns = TW_SECOND};
	while (on->filled < TIMERS &&
	       !tw_schedule(on->service, 3600 * TW_SECOND, never, NULL, &on->timers[on->filled]))
		on->filled++;
	on->submitted = tw_strand_submit(on->strands[1], destroy_scheduler, on);
	on->posted = tw_scheduler_submit_task(on->scheduler, &post, NULL);
}

Test(strand_real_time, what_waits_for_the_driver_is_not_waited_for_on_its_thread)
{
	struct tw_service_config config = {.size = sizeof config, .workers = 1, .max_timers = 16};
	static tw_timer timers[TIMERS];
	struct on_driver on = {.timers = timers, .answer = 1};
	expect_eq(tw_service_create(&on.service, &config), 0);
	expect_eq(tw_scheduler_create(&on.scheduler, on.service, NULL), 0);
	for (int i = 0; i < 2; i++)
		expect_eq(tw_strand_create(&on.strands[i], on.service, tw_executor_inline()), 0);
	expect_eq(tw_strand_submit(on.strands[0], make_ready, &on), 0);
	while (on.answer == 1)
		sched_yield();
	expect_eq(on.answer, 0);
	expect_eq(on.submitted, 0);
	expect_eq(on.posted, -EAGAIN);
	for (int i = 0; i < 2; i++)
		expect_eq(tw_strand_destroy(on.strands[i]), 0);
	expect_eq(tw_service_destroy(on.service), 0);
}

enum { EQUALS = 200000 };

static struct {
	atomic_int next, out_of_order;
} order;

static void check_order(void *arg)
{
	int number = (int)(intptr_t)arg;
	atomic_fetch_add(&order.out_of_order, number != atomic_load(&order.next));
	atomic_store(&order.next, number + 1);
}

/*
 * Equal delays that are submitted one after the other run in that order, although they become due
 * while others are submitted.
 */
Test(strand_real_time, equal_delays_run_in_the_order_of_submission)
{
	tw_service *service = open_service(2);
	tw_strand *strand;
	expect_eq(tw_strand_create(&strand, service, NULL), 0);
	for (int i = 0; i < EQUALS; i++)
		expect_eq(
		    tw_strand_schedule(strand, 3 * MS, check_order, (void *)(intptr_t)i, NULL), 0);
	while (atomic_load(&order.next) < EQUALS)
		sched_yield();
	expect_eq(atomic_load(&order.out_of_order), 0);
	expect_eq(tw_strand_destroy(strand), 0);
	close_service(service);
}
