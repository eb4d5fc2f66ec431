/*
 * pthread_cancel: a call that is there to run callbacks runs them to their end. In test/contract
 * all calls are made with a pending pthread_cancel.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "test/support/rig_suite.h"

TestSuite(service_real_cancelled_runs, .init = open_rig, .fini = close_rig, .timeout = 60);

static tw_manual *by_hand;
static tw_scheduler *scheduler;
static tw_action_scheduler *actions;
static tw_action *action;
static atomic_int ran;

struct caller {
	int (*call)(void);
	atomic_bool pending, returned;
	int answer;
};

__attribute__((noreturn)) static void *make_the_call(void *arg)
{
	struct caller *caller = arg;
	while (!caller->pending) { /* no cancellation point */
	}
	caller->answer = caller->call();
	caller->returned = true;
	for (;;)
		pthread_testcancel();
}

/* What the call answers to a thread that is cancelled before it, and ends only after it. */
static int cancelled_in(int (*call)(void))
{
	struct caller caller = {.call = call};
	pthread_t thread;
	void *end;
	expect_eq(pthread_create(&thread, NULL, make_the_call, &caller), 0);
	expect_eq(pthread_cancel(thread), 0);
	caller.pending = true;
	expect_eq(pthread_join(thread, &end), 0);
	cr_assert(end == PTHREAD_CANCELED);
	cr_assert(caller.returned, "the thread ended inside the call");
	return caller.answer;
}

static void expect_runs(int (*call)(void), int answer, int runs)
{
	ran = 0;
	expect_eq(cancelled_in(call), answer);
	expect_eq(ran, runs);
}

static void run_testcancel(void *arg)
{
	ran++;
	pthread_testcancel();
}

static int turn_testcancel(struct tw_turn *turn, void *arg)
{
	run_testcancel(arg);
	return TW_TURN_DONE;
}

static int act_testcancel(tw_action *self, void *state)
{
	run_testcancel(state);
	return 0;
}

static int advance(void)
{
	return tw_service_advance(rig.service, TW_NO_LIMIT);
}

static int advance_clock(void)
{
	return tw_clock_manual_advance_by(rig.clock, MS);
}

static int pump(void)
{
	return tw_manual_pump(by_hand, TW_NO_LIMIT);
}

static int run_ticket(void)
{
	return queue_executor_run_next(&queue);
}

static int run_scheduler(void)
{
	return tw_scheduler_run(scheduler, TW_NO_LIMIT);
}

static int flush(void)
{
	return tw_action_scheduler_flush(actions);
}

/* Three timers, which are due. */
static void bring(tw_executor *executor)
{
	struct tw_task task = {.size = sizeof task, .fn = run_testcancel, .executor = executor};
	for (int i = 0; i < 3; i++)
		expect_eq(tw_schedule_task(rig.service, &task, NULL), 0);
	if (executor)
		expect_eq(advance(), 3);
}

Test(service_real_cancelled_runs, no_callback_of_a_timer)
{
	bring(NULL);
	expect_runs(advance, 3, 3);
	bring(NULL);
	expect_runs(advance_clock, 0, 3);
	expect_eq(tw_manual_create(&by_hand, NULL), 0);
	bring(tw_manual_executor(by_hand));
	expect_runs(pump, 3, 3);
	bring(&queue.base);
	for (int i = 0; i < 3; i++)
		expect_runs(run_ticket, 1, 1);
	rig_advance(&rig, MS);
	expect_eq(tw_manual_destroy(by_hand), 0);
}

Test(service_real_cancelled_runs, no_turn_and_no_action)
{
	struct tw_scheduler_config turns = {.size = sizeof turns, .host = TW_HOST_MANUAL};
	struct tw_action_scheduler_config asap = {
	    .size = sizeof asap, .kind = TW_ACTION_KIND_ASAP, .flags = TW_ACTION_FLAG_BY_CALLER};
	expect_eq(tw_scheduler_create(&scheduler, rig.service, &turns), 0);
	expect_eq(tw_scheduler_submit(scheduler, TW_PRIORITY_NORMAL, turn_testcancel, NULL, NULL),
		  0);
	expect_runs(run_scheduler, TW_SCHEDULER_RUN_IDLE, 1);
	expect_eq(tw_scheduler_destroy(scheduler), 0);
	expect_eq(tw_action_scheduler_create(&actions, &asap), 0);
	expect_eq(tw_action_create(&action, actions, act_testcancel, NULL), 0);
	expect_eq(tw_action_schedule(action, NULL, 0), 0);
	expect_runs(flush, 0, 1);
	tw_action_destroy(action);
	expect_eq(tw_action_scheduler_destroy(actions), 0);
}
