/* What bounds the flush of a thread that the scheduler's host has lent. */
#include "test/support/action_suite.h"

TestSuite(action_bounds, .init = open_queue, .fini = close_left, .timeout = 60);

enum { MANY = 1000, MOST = 64 };

/* As another worker would: the next ticket, while the flusher is inside this work. */
static void bring_next(struct work *work)
{
	queue_executor_run_next(&tickets);
}

static void arm_many(struct work *works)
{
	for (int i = 0; i < MANY; i++) {
		works[i] = (struct work){.log = &notes, .id = i, .act = bring_next};
		arm(&works[i], MS);
	}
	rig_advance(&rig, 2 * MS);
}

static void expect_all_in_order(void)
{
	expect_eq(notes.count, MANY);
	for (int i = 0; i < MANY; i++)
		expect_eq(notes.ids[i], i);
}

/* Two workers bring actions as fast as one runs them: that one must not run them forever. */
Test(action_bounds, timers_flush_gives_its_worker_back)
{
	static struct work works[MANY];
	scheduler = scheduler_on(rig.service, TW_ACTION_KIND_ASYNC);
	arm_many(works);
	expect_eq(queue_executor_run_next(&tickets), 1);
	expect_eq(notes.count, MOST);
	int rounds = 0;
	for (; notes.count < MANY; rounds++)
		expect_eq(queue_executor_run_next(&tickets), 1);
	expect_ge(rounds, MANY / MOST - 1);
	queue_executor_run_all(&tickets);
	expect_all_in_order();
}

/* tw_action_run is asked for one run. What others bring meanwhile is not its caller's. */
Test(action_bounds, call_that_runs_an_action_gives_its_thread_back)
{
	static struct work works[MANY];
	struct work mine = {.log = &notes, .id = -1, .act = bring_next};
	mine.scheduler = scheduler = scheduler_on(rig.service, TW_ACTION_KIND_ASYNC);
	arm_many(works);
	expect_eq(tw_action_create(&mine.action, scheduler, work_run, NULL), 0);
	expect_eq(tw_action_run(mine.action, &mine), 0);
	expect_eq(notes.count, 1 + MOST);
	queue_executor_run_all(&tickets);
	expect_eq(notes.count, 1 + MANY);
	tw_action_destroy(mine.action);
}

/* ------------------------------------------------------------------------ turns */

static int turns, endless;

/* A chain of immediates, on a host whose threads come as soon as they are asked for. */
static void submit_next(void *arg)
{
	turns++;
	if (turns < endless)
		expect_eq(tw_immediate_submit(scheduler, submit_next, arg, NULL), 0);
	queue_executor_run_next(&tickets);
}

Test(action_bounds, chain_of_immediates_gives_its_worker_back)
{
	scheduler = scheduler_on(rig.service, TW_ACTION_KIND_ASAP);
	turns = 0, endless = MANY;
	expect_eq(tw_immediate_submit(scheduler, submit_next, NULL, NULL), 0);
	expect_eq(queue_executor_run_next(&tickets), 1);
	expect_le(turns, MOST);
	queue_executor_run_all(&tickets);
	expect_eq(turns, MANY);
}

/* ----------------------------------------------------------------------- frames */

static void bring_frames(struct work *work)
{
	while (queue_executor_run_next(&tickets) >= 0)
		;
}

/* What is handed over does not bring the open batch's frame early. */
Test(action_bounds, frame_comes_at_its_time_though_work_was_handed_over)
{
	static struct work works[MANY];
	struct work drawing = {.log = &notes, .id = MANY, .act = bring_frames};
	scheduler = scheduler_on(rig.service, TW_ACTION_KIND_FRAME);
	arm_many(works);
	arm(&drawing, 0);
	queue_executor_run_all(&tickets);
	expect_all_in_order();
	rig_advance(&rig, 20 * MS);
	queue_executor_run_all(&tickets);
	expect_eq(notes.count, MANY + 1);
}
