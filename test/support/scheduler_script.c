/* The verbs of schedulers' scripts. */
#include "scheduler_script.h"

#include <errno.h>
#include <string.h>

enum { TASKS = 64 };

struct task {
	tw_scheduler_task_id id;
	uint64_t each_ns, stays_ns;
	int64_t units, turns_left;
	int error;
	bool is_eager, is_accepted;
	const char *in_turn, *in_done;
	int told;
};

static struct {
	struct rig rig;
	struct queue_executor queue;
	tw_scheduler *scheduler;
	struct task tasks[TASKS];
} stage;

static int number_of(const struct task *task)
{
	return (int)(task - stage.tasks);
}

static void say_wanted(void *arg)
{
	say("wanted");
}

static void open_scheduler(const struct words *given)
{
	memset(&stage, 0, sizeof stage);
	queue_executor_open(&stage.queue);
	struct tw_service_config service = script_service(given);
	rig_open(&stage.rig, &service);
	struct tw_scheduler_config config = {.size = sizeof config,
					     .slice_ns = ms_of(given, "slice"),
					     .max_tasks = (uint32_t)option_of(given, "max", 0)};
	if (has_word(given, "host"))
		config.executor = &stage.queue.base;
	else if (has_word(given, "inline"))
		config.executor = tw_executor_inline();
	else if (!has_word(given, "default"))
		config.host = TW_HOST_MANUAL, config.wanted = say_wanted;
	expect_eq(tw_scheduler_create(&stage.scheduler, stage.rig.service, &config), 0);
}

static void close_scheduler(void)
{
	expect_eq(tw_scheduler_destroy(stage.scheduler), 0);
	queue_executor_run_all(&stage.queue);
	rig_close(&stage.rig);
	queue_executor_close(&stage.queue);
	for (int i = 0; i < TASKS; i++)
		expect_eq(stage.tasks[i].told, stage.tasks[i].is_accepted);
}

static void spend(uint64_t ns)
{
	expect_eq(tw_clock_manual_set(stage.rig.clock, rig_now(&stage.rig) + ns), 0);
}

static int turn(struct tw_turn *turn, void *arg)
{
	struct task *task = arg;
	say("%s %d", turn->did_timeout ? "late" : "turn", number_of(task));
	expect_eq(turn->task.id, task->id.id);
	expect_eq(turn->priority, tw_priority_current());
	spend(task->stays_ns);
	bool works_on = turn->did_timeout && !task->is_eager, has_units = task->units;
	while (task->units && (works_on || !tw_scheduler_should_yield(turn->scheduler))) {
		spend(task->each_ns);
		task->units--;
	}
	if (has_units)
		say("left %d", (int)task->units);
	play_calls(task->in_turn);
	return task->units || --task->turns_left > 0 ? TW_TURN_AGAIN : task->error;
}

static void tell_end(void *arg, enum tw_fate fate, int result)
{
	static const char *const words[] = {[TW_FATE_FIRED] = "done",
					    [TW_FATE_CANCELLED] = "cancelled",
					    [TW_FATE_DROPPED] = "dropped"};
	static const int results[] = {
	    [TW_FATE_CANCELLED] = -ECANCELED, [TW_FATE_DROPPED] = -ESHUTDOWN};
	struct task *task = arg;
	task->told++;
	if (fate == TW_FATE_FIRED && result)
		say("%d failed %s", number_of(task), error_name(result));
	else
		say("%d %s", number_of(task), words[fate]);
	if (fate != TW_FATE_FIRED)
		expect_eq(result, results[fate]);
	play_calls(task->in_done);
}

static void submit(const struct words *words)
{
	EACH_NUMBER (words, n) {
		struct task *task = &stage.tasks[n];
		*task = (struct task){.each_ns = ms_of(words, "each"),
				      .stays_ns = ms_of(words, "stays"),
				      .units = option_of(words, "units", 0),
				      .turns_left = option_of(words, "turns", 1),
				      .error = (int)option_of(words, "error", 0),
				      .is_eager = has_word(words, "eager"),
				      .in_turn = words->in_run,
				      .in_done = words->in_release};
		int64_t timeout_ms = option_of(words, "timeout", INT64_MIN);
		bool has_timeout = timeout_ms != INT64_MIN;
		const struct tw_scheduler_task spec = {
		    .size = sizeof spec,
		    .fn = turn,
		    .arg = task,
		    .done = has_word(words, "bare") ? NULL : tell_end,
		    .priority = (enum tw_priority)option_of(words, "priority", TW_PRIORITY_NORMAL),
		    .delay_ns = ms_of(words, "delay"),
		    .flags = has_timeout ? TW_SCHEDULER_TASK_TIMEOUT : 0,
		    .timeout_ns = has_timeout ? timeout_ms * (int64_t)MS : 0};
		int r = tw_scheduler_submit_task(stage.scheduler, &spec, &task->id);
		task->is_accepted = r == 0 && spec.done;
		say_answer(r);
	}
}

static void cancel(const struct words *words)
{
	EACH_NUMBER (words, n)
		say_outcome(tw_scheduler_cancel(stage.scheduler, stage.tasks[n].id));
}

static void run(const struct words *words)
{
	size_t budget = words->numbers ? (size_t)words->number[0] : TW_NO_LIMIT;
	int r = tw_scheduler_run(stage.scheduler, budget);
	say("%s", r < 0 ? error_name(r) : r == TW_SCHEDULER_RUN_MORE ? "MORE" : "IDLE");
}

static void close_it(const struct words *words)
{
	say_answer(tw_scheduler_close(stage.scheduler, 0));
}

static void destroy(const struct words *words)
{
	int r = tw_scheduler_destroy(stage.scheduler);
	if (r == 0)
		stage.scheduler = NULL;
	say_answer(r);
}

static void say_should_yield(const struct words *words)
{
	say("%s", tw_scheduler_should_yield(stage.scheduler) ? "yield" : "go on");
}

static void say_priority(const struct words *words)
{
	say("priority %d", (int)tw_priority_current());
}

static struct tw_scheduler_stats stats_now(void)
{
	struct tw_scheduler_stats stats = {.size = sizeof stats};
	expect_eq(tw_scheduler_stats(stage.scheduler, &stats), 0);
	return stats;
}

static void say_failure(const struct words *words)
{
	struct tw_scheduler_stats stats = stats_now();
	for (int i = 0; i < TASKS; i++)
		if (stage.tasks[i].id.id == stats.last_failure_task)
			say("%s of %d", error_name((int)stats.last_failure), i);
}

#define GAUGE(name) GAUGE_OF(tw_scheduler_stats, name)

static const struct gauge gauges[] = {
    GAUGE(submitted), GAUGE(completed),     GAUGE(failed),         GAUGE(cancelled),
    GAUGE(dropped),   GAUGE(ready),         GAUGE(delayed),        GAUGE(continued),
    GAUGE(slices),    GAUGE(host_requests), GAUGE(timers_armed),   GAUGE(cleared),
    GAUGE(rejected),  GAUGE(host_timer),    GAUGE(host_requested), {NULL, 0},
};

static void say_stats(const struct words *words)
{
	struct tw_scheduler_stats stats = stats_now();
	say_gauges(words, gauges, &stats);
}

static const struct verb verbs[] = {
    {"submit", submit},
    {"cancel", cancel},
    {"run", run},
    {"close", close_it},
    {"destroy", destroy},
    {"should_yield", say_should_yield},
    {"priority", say_priority},
    {"failure", say_failure},
    {"stats", say_stats},
    {NULL, NULL},
};

const struct stage scheduler_stage = {
    .open = open_scheduler,
    .close = close_scheduler,
    .rig = &stage.rig,
    .queue = &stage.queue,
    .verbs = verbs,
};
