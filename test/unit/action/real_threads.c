/*
 * Actions and real threads: who waits for whom. Nothing here has an upper bound on time but the
 * suite's.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "test/support/interleave.h"
#include "test/support/actions.h"
#include "test/support/shot.h"

TestSuite(action_real_threads, .timeout = 120);

struct slow {
	tw_action *action; /* for arm */
	atomic_bool begun, go_on;
	atomic_int runs;
};

static int run_slowly(tw_action *action, void *state)
{
	struct slow *slow = state;
	slow->begun = true;
	while (!slow->go_on)
		sched_yield();
	slow->runs++;
	return 0;
}

static void *let_go(void *arg)
{
	((struct slow *)arg)->go_on = true;
	return NULL;
}

/*
 * Closes an action while it runs on a worker, waits, and has it let go meanwhile: what the wait
 * answered.
 */
static int close_and_wait_while_it_runs(tw_action_scheduler *scheduler)
{
	struct slow slow = {0};
	pthread_t thread;
	tw_action *action;
	schedule_new(scheduler, run_slowly, &slow, 0, &action);
	while (!slow.begun)
		sched_yield();
	expect_eq(tw_action_run(action, &slow), -EBUSY);
	expect_eq(tw_action_close(action, 0), TW_RUNNING);
	expect_eq(tw_action_close(action, 1000), TW_RUNNING);
	pthread_create(&thread, NULL, let_go, &slow);
	int answer = tw_action_close(action, TW_FOREVER);
	expect_eq(slow.runs, 1);
	pthread_join(thread, NULL);
	expect_eq(tw_action_close(action, 0), TW_GONE);
	expect_eq(tw_action_destroy(action), TW_GONE);
	return answer;
}

Test(action_real_threads, close_wait_waits_for_the_run_on_another_thread)
{
	tw_service *service = open_service(2);
	tw_action_scheduler *scheduler = scheduler_on(service, TW_ACTION_KIND_ASYNC);
	int answer;
	while ((answer = close_and_wait_while_it_runs(scheduler)) == TW_GONE)
		; /* let go, and ended, before the wait began: once more */
	expect_eq(answer, TW_FINISHED);
	expect_eq(tw_action_scheduler_destroy(scheduler), 0);
	expect_eq(tw_service_destroy(service), 0);
}

Test(action_real_threads, destroying_a_scheduler_waits_for_the_last_run_and_frees_the_service)
{
	for (int i = 0; i < 200; i++) {
		tw_service *service = open_service(2);
		tw_action_scheduler *scheduler =
		    scheduler_on(service, i % 2 ? TW_ACTION_KIND_ASYNC : TW_ACTION_KIND_ASAP);
		struct slow slow = {0};
		pthread_t thread;
		tw_action *action;
		schedule_new(scheduler, run_slowly, &slow, 0, &action);
		while (!slow.begun)
			sched_yield();
		expect_eq(tw_action_destroy(action), TW_RUNNING);
		pthread_create(&thread, NULL, let_go, &slow);
		expect_eq(tw_action_scheduler_destroy(scheduler), 0);
		expect_eq(slow.runs, 1);
		expect_eq(tw_service_destroy(service), 0);
		pthread_join(thread, NULL);
	}
}

static void *flush(void *scheduler)
{
	tw_action_scheduler_flush(scheduler);
	return NULL;
}

/*
 * The second flush waits for the first, and returns when the first has ended. It has not fallen
 * asleep by then in every round.
 */
Test(action_real_threads, flush_waits_for_the_flush_of_another_thread)
{
	struct tw_action_scheduler_config config = {
	    .size = sizeof(config), .kind = TW_ACTION_KIND_ASAP, .flags = TW_ACTION_FLAG_BY_CALLER};
	tw_action_scheduler *scheduler = scheduler_of(&config);
	for (int i = 0; i < 50; i++) {
		pthread_t first, second;
		struct slow slow = {0};
		tw_action *action;
		schedule_new(scheduler, run_slowly, &slow, 0, &action);
		pthread_create(&first, NULL, flush, scheduler);
		while (!slow.begun)
			sched_yield();
		pthread_create(&second, NULL, flush, scheduler);
		for (int yields = 0; yields < 400; yields++)
			sched_yield();
		slow.go_on = true;
		pthread_join(first, NULL);
		pthread_join(second, NULL);
		expect_eq(slow.runs, 1);
		tw_action_destroy(action);
	}
	expect_eq(tw_action_scheduler_destroy(scheduler), 0);
}

struct ending {
	struct slow slow;
	tw_action_scheduler *scheduler;
	atomic_int result, action_result;
	atomic_bool over;
};

/* On the one worker, which is also the one that the turn asked for is for. */
static void end_scheduler(void *arg)
{
	struct ending *ending = arg;
	tw_action *action;
	schedule_new(ending->scheduler, run_slowly, &ending->slow, 0, &action);
	ending->action_result = tw_action_destroy(action);
	ending->result = tw_action_scheduler_destroy(ending->scheduler);
	ending->over = true;
}

Test(action_real_threads, worker_that_destroys_a_scheduler_does_not_wait_for_itself)
{
	tw_service *service = open_service(1);
	struct ending ending = {.slow.go_on = true,
				.scheduler = scheduler_on(service, TW_ACTION_KIND_ASAP),
				.result = 1};
	expect_eq(tw_schedule(service, 0, end_scheduler, &ending, NULL), 0);
	while (!ending.over)
		sched_yield();
	expect_eq(ending.action_result, TW_CANCELLED);
	expect_eq(ending.result, 0);
	expect_eq(tw_service_destroy(service), 0);
	expect_eq(ending.slow.runs, 0);
}

static void *arm(void *arg)
{
	struct slow *slow = arg;
	tw_action_schedule(slow->action, slow, 0);
	return NULL;
}

Test(action_real_threads, queue_that_another_thread_is_in_is_given_more_to_do)
{
	struct tw_action_scheduler_config config = {.size = sizeof(config),
						    .kind = TW_ACTION_KIND_QUEUE};
	tw_action_scheduler *queue = scheduler_of(&config);
	struct slow slow = {0}, next = {.go_on = true};
	pthread_t thread;
	expect_eq(tw_action_create(&slow.action, queue, run_slowly, NULL), 0);
	expect_eq(tw_action_create(&next.action, queue, run_slowly, NULL), 0);
	pthread_create(&thread, NULL, arm, &slow);
	while (!slow.begun)
		sched_yield();
	expect_eq(tw_action_schedule(next.action, &next, 0), 0);
	expect_eq(next.runs, 0);
	slow.go_on = true;
	pthread_join(thread, NULL);
	expect_eq(slow.runs, 1);
	expect_eq(next.runs, 1);
	tw_action_destroy(slow.action);
	tw_action_destroy(next.action);
	expect_eq(tw_action_scheduler_destroy(queue), 0);
}

/* ------------------------------------------- moved when its timer was claimed already */

static struct work moved;
static struct rig moved_rig;

static void move_it(void *unused)
{
	moved.error = tw_action_schedule(moved.action, &moved, HOUR);
}

static void reach_its_time(void *unused)
{
	rig_advance(&moved_rig, 2 * MS);
}

/* The nth step of the advance meets the move. Returns whether there is one. */
static bool move_at(tw_action_scheduler *scheduler, unsigned nth, int *not_yet_run)
{
	moved = (struct work){0};
	work_schedule(&moved, scheduler, MS);
	bool met = interleave(nth, reach_its_time, NULL, move_it, NULL);
	int runs = moved.runs;
	expect_eq(moved.error, 0);
	*not_yet_run += runs == 0;
	rig_advance(&moved_rig, HOUR);
	expect_eq(moved.runs, runs + 1);
	expect_eq(tw_action_destroy(moved.action), TW_GONE);
	return met;
}

/* A move before its work begins takes its run with it, also between the claim and the work. */
Test(action_real_threads, that_is_moved_when_its_timer_is_claimed_runs_at_its_new_time_only)
{
	unsigned nth = 1;
	int not_yet_run = 0;
	rig_open(&moved_rig, NULL);
	tw_action_scheduler *scheduler = scheduler_on(moved_rig.service, TW_ACTION_KIND_ASYNC);
	while (move_at(scheduler, nth, &not_yet_run))
		nth++;
	expect_eq(tw_action_scheduler_destroy(scheduler), 0);
	rig_close(&moved_rig);
	if (INTERLEAVES) {
		expect_gt(not_yet_run, 0);
		expect_gt(nth, (unsigned)not_yet_run);
	}
}
