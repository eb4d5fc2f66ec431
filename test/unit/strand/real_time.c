/* Strands on a running clock: when delayed tasks are due, and what runs on the tick thread. */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>

#include "test/support/shot.h"

TestSuite(strand_real_time, .timeout = 60);

/* Delayed tasks on the running clock: not early, in order of their delays. */
struct due {
	tw_service *service;
	uint64_t at_ns;
	int early;
	sem_t *done;
};

static void check_due(void *arg)
{
	struct due *due = arg;
	due->early = tw_service_now(due->service) < due->at_ns;
	sem_post(due->done);
}

Test(strand_real_time, delayed_tasks_are_never_early)
{
	tw_service *service = open_service(2);
	tw_strand *strand;
	static struct due dues[500];
	uint64_t seed = 3;
	sem_t done;
	sem_init(&done, 0, 0);
	expect_eq(tw_strand_create(&strand, service, NULL), 0);
	for (int i = 0; i < 500; i++) {
		uint64_t delay_ns = random_below(&seed, 100 * MS);
		dues[i] = (struct due){service, tw_service_now(service) + delay_ns, 0, &done};
		expect_eq(tw_strand_schedule(strand, delay_ns, check_due, &dues[i], NULL), 0);
	}
	await(&done, 500);
	for (int i = 0; i < 500; i++)
		expect_eq(dues[i].early, 0);
	expect_eq(tw_strand_destroy(strand), 0);
	close_service(service);
	sem_destroy(&done);
}

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
