/* The verbs of actions' scripts. */
#include "action_script.h"

#include <string.h>

#include "actions.h"

enum { TASKS = 64 };

struct task {
	tw_action *action;
	tw_immediate immediate;
	int64_t rearms;
	uint64_t every_ns, stays_ns;
	int failure;
	bool is_inside, is_destroyed;
	const char *in_run, *in_release;
};

static struct {
	struct rig rig;
	struct queue_executor queue;
	tw_strand *strand;
	tw_action_scheduler *scheduler;
	struct task tasks[TASKS];
	const char *in_failure;
} stage;

static int number_of(const void *task)
{
	return (int)((const struct task *)task - stage.tasks);
}

static void say_wanted(void *arg, bool is_wanted)
{
	say("%s", is_wanted ? "wanted" : "unwanted");
}

static void say_failed(void *arg, tw_action *action, int failure, size_t closed)
{
	int number = 0;
	while (number < TASKS - 1 && stage.tasks[number].action != action)
		number++;
	if (!action)
		say("failed %s", error_name(failure));
	else if (closed)
		say("failed %s of %d and closes %zu", error_name(failure), number, closed);
	else
		say("failed %s of %d", error_name(failure), number);
	play_calls(stage.in_failure);
}

static void open_actions(const struct words *given)
{
	memset(&stage, 0, sizeof stage);
	queue_executor_open(&stage.queue);
	struct tw_service_config service = script_service(given);
	rig_open(&stage.rig, &service);
	if (has_word(given, "strand"))
		expect_eq(tw_strand_create(&stage.strand, stage.rig.service, NULL), 0);
	bool is_callers = has_word(given, "caller");
	struct tw_action_scheduler_config config = {
	    .size = sizeof config,
	    .kind = has_word(given, "asap")    ? TW_ACTION_KIND_ASAP
		    : has_word(given, "frame") ? TW_ACTION_KIND_FRAME
		    : has_word(given, "queue") ? TW_ACTION_KIND_QUEUE
					       : TW_ACTION_KIND_ASYNC,
	    .flags = (is_callers ? TW_ACTION_FLAG_BY_CALLER : 0) |
		     (has_word(given, "cancel_batch") ? TW_ACTION_FLAG_CANCEL_BATCH : 0),
	    .service = is_callers || has_word(given, "alone") ? NULL : stage.rig.service,
	    .executor = stage.strand ? tw_strand_executor(stage.strand) : NULL,
	    .frames_per_second = (uint32_t)option_of(given, "fps", 0),
	    .wanted = is_callers ? say_wanted : NULL,
	    .failed = has_word(given, "silent") ? NULL : say_failed};
	stage.in_failure = given->in_release;
	stage.scheduler = scheduler_of(&config);
}

static void close_actions(void)
{
	for (int i = 0; i < TASKS; i++)
		if (stage.tasks[i].action && !stage.tasks[i].is_destroyed)
			tw_action_destroy(stage.tasks[i].action);
	expect_eq(tw_action_scheduler_destroy(stage.scheduler), 0);
	queue_executor_run_all(&stage.queue);
	expect_eq(tw_strand_destroy(stage.strand), 0);
	rig_close(&stage.rig);
	queue_executor_close(&stage.queue);
}

static int run(tw_action *action, void *state)
{
	struct task *task = state;
	say("run %d", number_of(task));
	expect_eq(task->is_inside, false);
	task->is_inside = true;
	expect_eq(tw_clock_manual_set(stage.rig.clock, rig_now(&stage.rig) + task->stays_ns), 0);
	if (task->rearms-- > 0)
		say_answer(tw_action_schedule(action, task, task->every_ns));
	play_calls(task->in_run);
	task->is_inside = false;
	return task->failure;
}

static void release(tw_action *action, void *state, enum tw_fate fate)
{
	static const char *const fates[] = {[TW_FATE_FIRED] = "fired",
					    [TW_FATE_CANCELLED] = "cancelled",
					    [TW_FATE_DROPPED] = "dropped"};
	struct task *task = state;
	say("%d released %s", number_of(task), fates[fate]);
	cr_assert_eq(action, task->action);
	expect_eq(task->is_inside, false);
	play_calls(task->in_release);
}

static void create(const struct words *words)
{
	EACH_NUMBER (words, n) {
		struct task *task = &stage.tasks[n];
		*task = (struct task){.rearms = option_of(words, "rearms", 0),
				      .every_ns = ms_of(words, "every"),
				      .stays_ns = ms_of(words, "stays"),
				      .failure = (int)option_of(words, "fails", 0),
				      .in_run = words->in_run,
				      .in_release = words->in_release};
		expect_eq(tw_action_create(&task->action, stage.scheduler, run,
					   has_word(words, "release") ? release : NULL),
			  0);
	}
}

static void schedule(const struct words *words, struct task *task, struct task *state)
{
	uint64_t delay_ns = ms_of(words, "delay");
	say_answer(tw_action_schedule(task->action, state, delay_ns));
}

static void arm(const struct words *words)
{
	EACH_NUMBER (words, n) {
		struct words one = *words;
		one.numbers = 1;
		one.number[0] = n;
		create(&one);
		schedule(words, &stage.tasks[n], &stage.tasks[n]);
	}
}

static void arm_again(const struct words *words)
{
	EACH_NUMBER (words, n)
		schedule(words, &stage.tasks[n], &stage.tasks[option_of(words, "state", n)]);
}

static void run_by_hand(const struct words *words)
{
	struct task *task = &stage.tasks[words->number[0]];
	say_answer(tw_action_run(task->action, task));
}

static void close_now(const struct words *words)
{
	EACH_NUMBER (words, n)
		say_outcome(tw_action_close(stage.tasks[n].action, 0));
}

static void close_wait(const struct words *words)
{
	EACH_NUMBER (words, n)
		say_outcome(tw_action_close(stage.tasks[n].action, TW_FOREVER));
}

static void destroy(const struct words *words)
{
	EACH_NUMBER (words, n) {
		stage.tasks[n].is_destroyed = true;
		say_outcome(tw_action_destroy(stage.tasks[n].action));
	}
}

static void say_state(const struct words *words)
{
	EACH_NUMBER (words, n) {
		enum tw_action_state state = tw_action_state(stage.tasks[n].action);
		say("%s", state == TW_ACTION_STATE_IDLE     ? "IDLE"
			  : state == TW_ACTION_STATE_ARMED  ? "ARMED"
			  : state == TW_ACTION_STATE_CLOSED ? "CLOSED"
							    : "RUNNING");
	}
}

static void run_immediate(void *arg)
{
	struct task *task = arg;
	say("run %d", number_of(task));
	play_calls(task->in_run);
}

/* Their numbers are from 1, in the order of the submits. */
static void submit_immediate_of(const struct words *words)
{
	EACH_NUMBER (words, n) {
		struct task *task = &stage.tasks[n];
		*task = (struct task){.in_run = words->in_run};
		say_answer(
		    tw_immediate_submit(stage.scheduler, run_immediate, task, &task->immediate));
		say("number %d", (int)task->immediate.id);
	}
}

static void clear_immediate(const struct words *words)
{
	EACH_NUMBER (words, n)
		say_outcome(tw_immediate_cancel(stage.scheduler, stage.tasks[n].immediate));
}

static void flush(const struct words *words)
{
	say_answer(tw_action_scheduler_flush(stage.scheduler));
}

static void destroy_scheduler(const struct words *words)
{
	int r = tw_action_scheduler_destroy(stage.scheduler);
	if (r == 0)
		stage.scheduler = NULL;
	say_answer(r);
}

static void close_strand(const struct words *words)
{
	say_answer(tw_strand_close(stage.strand, 0));
}

#define GAUGE(name) GAUGE_OF(tw_action_scheduler_stats, name)

static const struct gauge gauges[] = {
    GAUGE(actions), GAUGE(armed),   GAUGE(runs),   GAUGE(failures), GAUGE(closed_by_failure),
    GAUGE(flushes), GAUGE(refused), GAUGE(untold), GAUGE(turns),    GAUGE(turns_cancelled),
    {NULL, 0},
};

static void say_stats(const struct words *words)
{
	struct tw_action_scheduler_stats stats = action_stats(stage.scheduler);
	say_gauges(words, gauges, &stats);
}

static const struct verb verbs[] = {
    {"create", create},
    {"arm", arm},
    {"again", arm_again},
    {"run", run_by_hand},
    {"close", close_now},
    {"close_wait", close_wait},
    {"destroy", destroy},
    {"state", say_state},
    {"immediate", submit_immediate_of},
    {"clear", clear_immediate},
    {"flush", flush},
    {"destroy_scheduler", destroy_scheduler},
    {"stats", say_stats},
    {"close_strand", close_strand},
    {NULL, NULL},
};

const struct stage action_stage = {
    .open = open_actions,
    .close = close_actions,
    .rig = &stage.rig,
    .queue = &stage.queue,
    .verbs = verbs,
};
