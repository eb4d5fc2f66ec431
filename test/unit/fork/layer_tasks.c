/*
 * A function of a layer forks, on real threads. Its child is refused by the layer and calls _exit.
 * The parent notices nothing: what was submitted behind it, perhaps into the same batch, runs.
 * test/contract has the answers of all calls in a child.
 */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "test/support/actions.h"
#include "test/support/child.h"
#include "test/support/shot.h"

TestSuite(fork_layer_tasks, .timeout = 60);

enum { BEHIND = 30, ROUNDS = 5 };

static tw_service *service;
static tw_strand *strand;
static tw_scheduler *scheduler;
static tw_action_scheduler *actions;
static tw_action *action, *behind[BEHIND];
static _Atomic pid_t child;
static atomic_int runs, behind_runs;

static void fork_here(void (*check)(void))
{
	runs++;
	pid_t forked = child_fork();
	if (forked == 0) {
		check();
		_exit(0);
	}
	child = forked;
}

/* -------------------------------------------------------------------- strands */

static void count(void *arg)
{
	behind_runs++;
}

static void check_strand(void)
{
	tw_strand_task_id task = {7};
	child_eq(tw_strand_submit(strand, count, NULL), -EPERM);
	child_eq(tw_strand_schedule(strand, 0, count, NULL, &task), -EPERM);
	child_eq(task.id, 0);
	child_eq(tw_strand_close(strand, 0), -EPERM);
	child_eq(tw_strand_executor(strand) == NULL, 1);
}

static void task_forks(void *arg)
{
	fork_here(check_strand);
}

static void begin_strand(void)
{
	expect_eq(tw_strand_create(&strand, service, NULL), 0);
	expect_eq(tw_strand_submit(strand, task_forks, NULL), 0);
	for (int i = 0; i < BEHIND; i++)
		expect_eq(tw_strand_schedule(strand, (uint64_t)(i % 2) * MS, count, NULL, NULL), 0);
}

static void end_strand(void)
{
	expect_eq(tw_strand_destroy(strand), 0);
}

/* ----------------------------------------------------------------- schedulers */

static int turn_counts(struct tw_turn *turn, void *arg)
{
	count(arg);
	return TW_TURN_DONE;
}

static void check_scheduler(void)
{
	child_eq(tw_scheduler_should_yield(scheduler), false);
	child_eq(tw_scheduler_submit(scheduler, TW_PRIORITY_NORMAL, turn_counts, NULL, NULL),
		 -EPERM);
	child_eq(tw_scheduler_close(scheduler, 0), -EPERM);
	child_eq(tw_scheduler_destroy(scheduler), -EDEADLK);
}

static int turn_forks(struct tw_turn *turn, void *arg)
{
	fork_here(check_scheduler);
	return TW_TURN_DONE;
}

static void begin_scheduler(void)
{
	expect_eq(tw_scheduler_create(&scheduler, service, NULL), 0);
	for (int i = 0; i <= BEHIND; i++)
		expect_eq(tw_scheduler_submit(scheduler, TW_PRIORITY_NORMAL,
					      i ? turn_counts : turn_forks, NULL, NULL),
			  0);
}

static void end_scheduler(void)
{
	expect_eq(tw_scheduler_close(scheduler, TW_FOREVER), 0);
	expect_eq(tw_scheduler_destroy(scheduler), 0);
}

/* -------------------------------------------------------------------- actions */

static void check_action(void)
{
	struct tw_action_scheduler_stats stats = {.size = sizeof stats};
	child_eq(tw_action_schedule(action, NULL, 0), -EPERM);
	child_eq(tw_action_close(action, 0), -EPERM);
	child_eq(tw_action_scheduler_flush(actions), -EPERM);
	child_eq(tw_action_scheduler_stats(actions, &stats), -EPERM);
	child_eq(tw_action_scheduler_destroy(actions), -EBUSY);
	child_eq(tw_action_destroy(action), TW_GONE);
}

static int action_forks(tw_action *self, void *state)
{
	fork_here(check_action);
	return 0;
}

static int action_counts(tw_action *self, void *state)
{
	count(state);
	return 0;
}

static enum tw_action_kind kind;

/* A trampoline runs on the thread that arms, and has no service. */
static void begin_actions(void)
{
	actions = kind == TW_ACTION_KIND_QUEUE
		      ? scheduler_of(&(struct tw_action_scheduler_config){
			    .size = sizeof(struct tw_action_scheduler_config), .kind = kind})
		      : scheduler_on(service, kind);
	expect_eq(schedule_new(actions, action_forks, NULL, 0, &action), 0);
	for (int i = 0; i < BEHIND; i++)
		expect_eq(schedule_new(actions, action_counts, NULL, 0, &behind[i]), 0);
}

static void end_actions(void)
{
	tw_action_destroy(action);
	for (int i = 0; i < BEHIND; i++)
		tw_action_destroy(behind[i]);
	expect_eq(tw_action_scheduler_destroy(actions), 0);
}

/* ------------------------------------------------------------------ the table */

static void fork_in(void (*begin)(void), void (*end)(void))
{
	service = open_service(2);
	for (int i = 0; i < ROUNDS; i++) {
		child = 0;
		runs = behind_runs = 0;
		begin();
		while (!child || behind_runs < BEHIND)
			sched_yield();
		expect_child_well(child);
		expect_eq(runs, 1);
		end();
		expect_eq(behind_runs, BEHIND);
	}
	close_service(service);
}

Test(fork_layer_tasks, task_of_a_strand)
{
	fork_in(begin_strand, end_strand);
}

Test(fork_layer_tasks, task_of_a_scheduler)
{
	fork_in(begin_scheduler, end_scheduler);
}

Test(fork_layer_tasks, action_of_each_kind)
{
	static const enum tw_action_kind kinds[] = {TW_ACTION_KIND_ASYNC, TW_ACTION_KIND_ASAP,
						    TW_ACTION_KIND_FRAME, TW_ACTION_KIND_QUEUE};
	for (int i = 0; i < 4; i++) {
		kind = kinds[i];
		fork_in(begin_actions, end_actions);
	}
}
