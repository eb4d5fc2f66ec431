/*
 * pthread_cancel: a call that is there to run callbacks runs them to their end. In test/contract
 * all calls are made with a pending pthread_cancel.
 */
#include <errno.h>

#include "test/support/cancelled.h"
#include "test/support/rig.h"

TestSuite(service_real_cancelled_runs, .timeout = 60);

static tw_service *service;
static tw_clock *clock_by_hand;
static tw_manual *queue;
static tw_batch *ticket;
static tw_scheduler *scheduler;
static tw_action_scheduler *actions;
static tw_action *action;
static atomic_int ran;

static void run_testcancel(void *arg)
{
	atomic_fetch_add((atomic_int *)arg, 1);
	pthread_testcancel();
}

static int advance(void)
{
	return tw_service_advance(service, TW_NO_LIMIT);
}

static int pump(void)
{
	return tw_manual_pump(queue, TW_NO_LIMIT);
}

static int run_ticket(void)
{
	return tw_run_one(ticket);
}

static int keep_ticket(tw_executor *self, tw_batch *batch, size_t n)
{
	expect_eq(n, 1);
	ticket = batch;
	return 0;
}

static void open_due_on(tw_executor *executor, int timers)
{
	struct tw_service_config config = TW_INIT(tw_service_config);
	expect_eq(tw_clock_manual_create(&clock_by_hand, SECOND), 0);
	config.clock = clock_by_hand;
	config.drive = TW_DRIVE_MANUAL;
	config.executor = executor;
	expect_eq(tw_service_create(&service, &config), 0);
	ran = 0;
	for (int i = 0; i < timers; i++)
		expect_eq(tw_schedule(service, MS, run_testcancel, &ran, NULL), 0);
	expect_eq(tw_clock_manual_set(clock_by_hand, SECOND + 3 * MS), 0);
}

static void close_due(int runs)
{
	expect_eq(ran, runs);
	expect_eq(tw_service_destroy(service), 0);
	expect_eq(tw_clock_manual_destroy(clock_by_hand), 0);
}

static int advance_clock(void)
{
	return tw_clock_manual_advance_by(clock_by_hand, MS);
}

Test(service_real_cancelled_runs, no_callback_that_the_driver_runs)
{
	open_due_on(tw_executor_inline(), 3);
	expect_eq(cancelled_in(advance), 3);
	close_due(3);
	open_due_on(tw_executor_inline(), 3);
	expect_eq(cancelled_in(advance_clock), 0);
	close_due(3);
}

Test(service_real_cancelled_runs, no_callback_of_a_manual_queue)
{
	expect_eq(tw_manual_create(&queue, NULL), 0);
	open_due_on(tw_manual_executor(queue), 3);
	expect_eq(advance(), 3);
	expect_eq(cancelled_in(pump), 3);
	close_due(3);
	expect_eq(tw_manual_destroy(queue), 0);
}

Test(service_real_cancelled_runs, no_callback_of_an_own_executor)
{
	static const struct tw_executor_ops ops = {sizeof ops, keep_ticket};
	tw_executor own = {&ops};
	open_due_on(&own, 1);
	expect_eq(advance(), 1);
	expect_eq(cancelled_in(run_ticket), 1);
	close_due(1);
}

static int turn_testcancel(struct tw_turn *turn, void *arg)
{
	run_testcancel(arg);
	return TW_TURN_DONE;
}

static int run_scheduler(void)
{
	return tw_scheduler_run(scheduler, TW_NO_LIMIT);
}

Test(service_real_cancelled_runs, no_turn_of_a_manual_scheduler)
{
	struct tw_scheduler_config config = TW_INIT(tw_scheduler_config);
	config.host = TW_HOST_MANUAL;
	open_due_on(tw_executor_inline(), 0);
	expect_eq(tw_scheduler_create(&scheduler, service, &config), 0);
	expect_eq(tw_scheduler_submit(scheduler, TW_PRIORITY_NORMAL, turn_testcancel, &ran, NULL),
		  0);
	expect_eq(cancelled_in(run_scheduler), TW_SCHEDULER_RUN_IDLE);
	expect_eq(tw_scheduler_destroy(scheduler), 0);
	close_due(1);
}

static int act_testcancel(tw_action *self, void *state)
{
	run_testcancel(state);
	return 0;
}

static int flush(void)
{
	return tw_action_scheduler_flush(actions);
}

Test(service_real_cancelled_runs, no_action_of_a_flush)
{
	struct tw_action_scheduler_config config = TW_INIT(tw_action_scheduler_config);
	config.kind = TW_ACTION_KIND_ASAP;
	config.flags = TW_ACTION_FLAG_BY_CALLER;
	ran = 0;
	expect_eq(tw_action_scheduler_create(&actions, &config), 0);
	expect_eq(tw_action_create(&action, actions, act_testcancel, NULL), 0);
	expect_eq(tw_action_schedule(action, &ran, 0), 0);
	expect_eq(cancelled_in(flush), 0);
	expect_eq(ran, 1);
	tw_action_destroy(action);
	expect_eq(tw_action_scheduler_destroy(actions), 0);
}
