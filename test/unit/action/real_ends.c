/*
 * Ends of actions and schedulers while other threads are still inside calls. Sanitizers look for
 * what is touched too late.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "test/support/actions.h"
#include "test/support/shot.h"

TestSuite(action_real_ends, .timeout = 120);

/* ------------------------------------------------ close and destroy at once */

struct self {
	atomic_bool begun;
	atomic_int releases;
};

/* Destroys its action when another thread waits for its end. */
static int destroy_self(tw_action *action, void *state)
{
	struct self *self = state;
	self->begun = true;
	while (tw_action_state(action) != TW_ACTION_STATE_CLOSED)
		sched_yield();
	tw_action_destroy(action);
	return 0;
}

static void count_release(tw_action *action, void *state, enum tw_fate fate)
{
	struct self *self = state;
	for (int i = 0; i < 100; i++)
		sched_yield();
	self->releases++;
}

Test(action_real_ends, close_waits_for_work_that_destroys_its_action_and_for_the_release)
{
	tw_service *service = open_service(2);
	tw_action_scheduler *scheduler = scheduler_on(service, TW_ACTION_KIND_ASYNC);
	for (int i = 0; i < 200; i++) {
		struct self self = {0};
		tw_action *action;
		expect_eq(tw_action_create(&action, scheduler, destroy_self, count_release), 0);
		tw_action_schedule(action, &self, 0);
		while (!self.begun)
			sched_yield();
		expect_eq(tw_action_close(action, TW_FOREVER), TW_FINISHED);
		expect_eq(self.releases, 1);
	}
	expect_eq(tw_action_scheduler_destroy(scheduler), 0);
	expect_eq(tw_service_destroy(service), 0);
}

/* --------------------------------- a scheduler that is destroyed as soon as it can be */

static int run_once(tw_action *action, void *state)
{
	tw_action_destroy(action);
	return 0;
}

static int rest(tw_action *action, void *state)
{
	return 0;
}

struct user {
	tw_action_scheduler *scheduler;
	tw_action *action;
	uint64_t delay_ns;
	atomic_bool *go_on;
};

/* Cancels a timer of the service, after which nothing of the action is left. */
static void *arm_and_destroy(void *arg)
{
	struct user *user = arg;
	tw_action_schedule(user->action, NULL, user->delay_ns);
	tw_action_destroy(user->action);
	return NULL;
}

/* Its work destroys the action, on whatever thread. */
static void *arm_only(void *arg)
{
	struct user *user = arg;
	while (!atomic_load(user->go_on))
		sched_yield();
	tw_action_schedule(user->action, NULL, 0);
	return NULL;
}

/*
 * Another thread destroys scheduler and service as soon as the scheduler's destroy no longer
 * answers -EBUSY.
 */
static void destroy_soon(tw_service *service, tw_action_scheduler *scheduler)
{
	int r;
	while ((r = tw_action_scheduler_destroy(scheduler)) == -EBUSY)
		sched_yield();
	expect_eq(r, 0);
	expect_eq(tw_service_destroy(service), 0);
}

static void end_while(enum tw_action_kind kind, tw_action_fn *fn, void *(*use)(void *),
		      uint64_t delay_ns)
{
	struct tw_service_config cfg = {
	    .size = sizeof(cfg), .drive = TW_DRIVE_MANUAL, .workers = 1};
	atomic_bool go_on = true;
	struct user user = {.delay_ns = delay_ns, .go_on = &go_on};
	tw_service *service;
	pthread_t thread;
	expect_eq(tw_service_create(&service, &cfg), 0);
	user.scheduler = scheduler_on(service, kind);
	expect_eq(tw_action_create(&user.action, user.scheduler, fn, NULL), 0);
	pthread_create(&thread, NULL, use, &user);
	destroy_soon(service, user.scheduler);
	pthread_join(thread, NULL);
}

Test(action_real_ends, scheduler_and_service_go_while_the_last_destroy_cancels_a_timer)
{
	for (int i = 0; i < 300; i++) {
		end_while(TW_ACTION_KIND_ASYNC, rest, arm_and_destroy, HOUR);
		end_while(TW_ACTION_KIND_FRAME, rest, arm_and_destroy, 0);
	}
}

Test(action_real_ends, scheduler_goes_while_the_call_that_armed_its_last_action_returns)
{
	for (int i = 0; i < 300; i++) {
		end_while(TW_ACTION_KIND_ASAP, run_once, arm_only, 0);
		end_while(TW_ACTION_KIND_QUEUE, run_once, arm_only, 0);
	}
}

/*
 * Two threads arm a queue: one of them runs the other's action, whose work destroys it, before the
 * other's call has returned.
 */
Test(action_real_ends, queue_goes_while_the_call_whose_action_another_thread_ran_returns)
{
	for (int i = 0; i < 500; i++) {
		struct tw_action_scheduler_config config = {.size = sizeof(config),
							    .kind = TW_ACTION_KIND_QUEUE};
		tw_action_scheduler *queue = scheduler_of(&config);
		atomic_bool go_on = false;
		struct user users[2];
		pthread_t threads[2];
		for (int k = 0; k < 2; k++) {
			users[k] = (struct user){.scheduler = queue, .go_on = &go_on};
			expect_eq(tw_action_create(&users[k].action, queue, run_once, NULL), 0);
			pthread_create(&threads[k], NULL, arm_only, &users[k]);
		}
		go_on = true;
		int r;
		while ((r = tw_action_scheduler_destroy(queue)) == -EBUSY)
			sched_yield();
		expect_eq(r, 0);
		for (int k = 0; k < 2; k++)
			pthread_join(threads[k], NULL);
	}
}
