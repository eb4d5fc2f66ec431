/* Misuses of schedulers, actions and immediates. */
#include <errno.h>

#include "rows.h"

static tw_scheduler *scheduler, *hosted;
static tw_action_scheduler *queue, *asap;
static tw_action *action;

static int turn(struct tw_turn *now, void *arg)
{
	return TW_TURN_DONE;
}

static int act(tw_action *self, void *state)
{
	return 0;
}

static void wanted(void *arg)
{
}

static void wanted_or_not(void *arg, bool is_wanted)
{
}

static void open_work(void)
{
	misuse_open();
	expect_eq(tw_scheduler_create(&scheduler, manual, NULL), 0);
	expect_eq(tw_scheduler_create(&hosted, manual,
				      STRUCT(tw_scheduler_config, .host = TW_HOST_MANUAL)),
		  0);
	expect_eq(tw_action_scheduler_create(
		      &queue, STRUCT(tw_action_scheduler_config, .kind = TW_ACTION_KIND_QUEUE)),
		  0);
	expect_eq(tw_action_scheduler_create(&asap, STRUCT(tw_action_scheduler_config,
							   .kind = TW_ACTION_KIND_ASAP,
							   .service = manual)),
		  0);
	expect_eq(tw_action_create(&action, queue, act, NULL), 0);
}

static void close_work(void)
{
	expect_in_fini();
	tw_action_destroy(action);
	expect_eq(tw_action_scheduler_destroy(asap), 0);
	expect_eq(tw_action_scheduler_destroy(queue), 0);
	expect_eq(tw_scheduler_destroy(hosted), 0);
	expect_eq(tw_scheduler_destroy(scheduler), 0);
	misuse_close();
}

TestSuite(misuse_work, .init = open_work, .fini = close_work, .timeout = 60);

#define TOO_LONG (TW_MAX_DELAY_NS + 1)

/* ----------------------------------------------------------------- scheduler */

#define SCHEDULER_ROW(member, ...)                       \
	ROW(-EINVAL, "tw_scheduler_create: " member BAD, \
	    tw_scheduler_create(&other, manual, STRUCT(tw_scheduler_config, __VA_ARGS__)))

Test(misuse_work, schedulers)
{
	tw_scheduler *other;
	NULL_ROW(tw_scheduler_create, "out", NULL, manual, NULL);
	NULL_ROW(tw_scheduler_create, "service", &other, NULL, NULL);
	SMALL_ROW(tw_scheduler_config,
		  tw_scheduler_create(&other, manual, SMALL(tw_scheduler_config)));
	SCHEDULER_ROW("tw_scheduler_config.host", .host = (enum tw_scheduler_host)2);
	SCHEDULER_ROW("tw_scheduler_config.executor", .host = TW_HOST_MANUAL,
		      .executor = tw_pool_executor(pool));
	SCHEDULER_ROW("tw_scheduler_config.executor", .executor = &unsound);
	SCHEDULER_ROW("tw_scheduler_config.wanted", .wanted = wanted);
	SCHEDULER_ROW("tw_scheduler_config.max_tasks", .max_tasks = (1u << 28) + 1);
	SCHEDULER_ROW("tw_scheduler_config.slice_ns", .slice_ns = TOO_LONG);
	SCHEDULER_ROW("tw_scheduler_config.timeout_ns", .timeout_ns = {1});
	SCHEDULER_ROW("tw_scheduler_config.timeout_ns",
		      .timeout_ns = {[TW_PRIORITY_LOW] = INT64_MAX});
	SCHEDULER_ROW("tw_scheduler_config.timeout_ns",
		      .timeout_ns = {[TW_PRIORITY_LOW] = INT64_MIN});
}

Test(misuse_work, null_schedulers)
{
	tw_scheduler_task_id id = {0};
	NULL_ROW(tw_scheduler_submit, "scheduler", NULL, TW_PRIORITY_LOW, turn, NULL, NULL);
	NULL_ROW(tw_scheduler_submit, "fn", scheduler, TW_PRIORITY_LOW, NULL, NULL, NULL);
	NULL_ROW(tw_scheduler_submit_task, "scheduler", NULL, STRUCT(tw_scheduler_task, .fn = turn),
		 NULL);
	NULL_ROW(tw_scheduler_submit_task, "task", scheduler, NULL, NULL);
	NULL_ROW(tw_scheduler_cancel, "scheduler", NULL, id);
	NULL_ROW(tw_scheduler_close, "scheduler", NULL, 0);
	NULL_ROW(tw_scheduler_run, "scheduler", NULL, 1);
	NULL_ROW(tw_scheduler_stats, "scheduler", NULL, STRUCT(tw_scheduler_stats));
	NULL_ROW(tw_scheduler_stats, "out", scheduler, NULL);
	TOLD("tw_scheduler_should_yield: scheduler is NULL", tw_scheduler_should_yield(NULL));
	SMALL_ROW(tw_scheduler_stats, tw_scheduler_stats(scheduler, SMALL(tw_scheduler_stats)));
	BAD_ROW(-EINVAL, tw_scheduler_run, "budget", hosted, 0);
	ROW(-EINVAL, "tw_scheduler_run: an executor runs the tasks: set host to TW_HOST_MANUAL",
	    tw_scheduler_run(scheduler, 1));
}

#define TASK_ROW(error, member, ...)                        \
	ROW(error, "tw_scheduler_submit_task: " member BAD, \
	    tw_scheduler_submit_task(scheduler, STRUCT(tw_scheduler_task, __VA_ARGS__), NULL))

Test(misuse_work, tasks_of_schedulers)
{
	SMALL_ROW(tw_scheduler_task,
		  tw_scheduler_submit_task(scheduler, SMALL(tw_scheduler_task), NULL));
	TASK_ROW(-EINVAL, "tw_scheduler_task.fn", .arg = NULL);
	TASK_ROW(-EINVAL, "tw_scheduler_task.flags", .fn = turn, .flags = 128);
	TASK_ROW(-EINVAL, "tw_scheduler_task.timeout_ns", .fn = turn, .timeout_ns = 1);
	TASK_ROW(-ERANGE, "tw_scheduler_task.delay_ns", .fn = turn, .delay_ns = TOO_LONG);
	TASK_ROW(-ERANGE, "tw_scheduler_task.timeout_ns", .fn = turn,
		 .flags = TW_SCHEDULER_TASK_TIMEOUT, .timeout_ns = (int64_t)TOO_LONG);
	TASK_ROW(-ERANGE, "tw_scheduler_task.timeout_ns", .fn = turn,
		 .flags = TW_SCHEDULER_TASK_TIMEOUT, .timeout_ns = INT64_MIN);
}

/* ------------------------------------------------------------------- actions */

#define ACTIONS_ROW(member, ...)                                \
	ROW(-EINVAL, "tw_action_scheduler_create: " member BAD, \
	    tw_action_scheduler_create(&other, STRUCT(tw_action_scheduler_config, __VA_ARGS__)))
#define QUEUE .kind = TW_ACTION_KIND_QUEUE

Test(misuse_work, schedulers_of_actions)
{
	tw_action_scheduler *other;
	NULL_ROW(tw_action_scheduler_create, "out", NULL, STRUCT(tw_action_scheduler_config));
	NULL_ROW(tw_action_scheduler_create, "cfg", &other, NULL);
	SMALL_ROW(tw_action_scheduler_config,
		  tw_action_scheduler_create(&other, SMALL(tw_action_scheduler_config)));
	ACTIONS_ROW("tw_action_scheduler_config.kind", .kind = (enum tw_action_kind)4);
	ACTIONS_ROW("tw_action_scheduler_config.flags", QUEUE, .flags = 128);
	ACTIONS_ROW("tw_action_scheduler_config.reserved", QUEUE, .reserved = 1);
	ACTIONS_ROW("tw_action_scheduler_config.flags", QUEUE, .flags = TW_ACTION_FLAG_BY_CALLER);
	ACTIONS_ROW("tw_action_scheduler_config.wanted", QUEUE, .wanted = wanted_or_not);
	ACTIONS_ROW("tw_action_scheduler_config.frames_per_second", .kind = TW_ACTION_KIND_FRAME,
		    .service = manual, .frames_per_second = 1001);
	ACTIONS_ROW("tw_action_scheduler_config.frames_per_second", QUEUE, .frames_per_second = 60);
	ACTIONS_ROW("tw_action_scheduler_config.wanted", .kind = TW_ACTION_KIND_ASAP,
		    .service = manual, .wanted = wanted_or_not);
	ACTIONS_ROW("tw_action_scheduler_config.service", .kind = TW_ACTION_KIND_ASYNC);
	ACTIONS_ROW("tw_action_scheduler_config.service", .kind = TW_ACTION_KIND_ASAP);
	ACTIONS_ROW("tw_action_scheduler_config.service", .kind = TW_ACTION_KIND_FRAME);
	ACTIONS_ROW("tw_action_scheduler_config.executor", QUEUE,
		    .executor = tw_pool_executor(pool));
	ACTIONS_ROW("tw_action_scheduler_config.executor", .service = manual, .executor = &unsound);
}

Test(misuse_work, null_actions)
{
	tw_action *other;
	NULL_ROW(tw_action_create, "out", NULL, queue, act, NULL);
	NULL_ROW(tw_action_create, "scheduler", &other, NULL, act, NULL);
	NULL_ROW(tw_action_create, "fn", &other, queue, NULL, NULL);
	NULL_ROW(tw_action_schedule, "action", NULL, NULL, 0);
	NULL_ROW(tw_action_run, "action", NULL, NULL);
	NULL_ROW(tw_action_close, "action", NULL, 0);
	NULL_ROW(tw_action_state, "action", NULL);
	NULL_ROW(tw_action_scheduler_flush, "scheduler", NULL);
	NULL_ROW(tw_action_scheduler_stats, "scheduler", NULL, STRUCT(tw_action_scheduler_stats));
	NULL_ROW(tw_action_scheduler_stats, "out", queue, NULL);
	NULL_ROW(tw_immediate_submit, "scheduler", NULL, misuse_fn, NULL, NULL);
	NULL_ROW(tw_immediate_submit, "fn", asap, NULL, NULL, NULL);
	NULL_ROW(tw_immediate_cancel, "scheduler", NULL, (tw_immediate){0});
	SMALL_ROW(tw_action_scheduler_stats,
		  tw_action_scheduler_stats(queue, SMALL(tw_action_scheduler_stats)));
}

Test(misuse_work, actions)
{
	ROW(-EINVAL, "tw_action_schedule: a delay needs a scheduler with a service",
	    tw_action_schedule(action, NULL, 1));
	BAD_ROW(-ERANGE, tw_action_schedule, "delay_ns", action, NULL, TOO_LONG);
	ROW(-EINVAL,
	    "tw_action_scheduler_flush: the scheduler's flags must have TW_ACTION_FLAG_BY_CALLER",
	    tw_action_scheduler_flush(queue));
	ROW(-EINVAL, "tw_immediate_submit: the scheduler's kind must be ASAP or FRAME",
	    tw_immediate_submit(queue, misuse_fn, NULL, NULL));
	ROW(-EINVAL, "tw_immediate_cancel: the scheduler's kind must be ASAP or FRAME",
	    tw_immediate_cancel(queue, (tw_immediate){0}));
}
