/*
 * Actions: arm, close, fail, advance and flush on a scheduler of each kind. The rule for failures
 * is that of RxJS 7.
 */
#include <stdio.h>

#include <errno.h>
#include "test/peers/ours/script.h"

enum { FAILURE = 100, SLOT_MS = 8 };

struct actions {
	struct script *script;
	struct fixture fixture;
	tw_action_scheduler *scheduler;
	struct task {
		struct actions *actions;
		tw_action *action;
		int64_t armed_ms; /* delay of the arming that has not run; -1: none */
		bool fails;
	} tasks[IDS];
	int running; /* -1: nothing */
	intptr_t armings;
	bool wanted;
	bool by_caller;
};

static int64_t now_ms(const struct actions *a)
{
	return (int64_t)((tw_service_now(a->fixture.service) - a->fixture.start_ns) / MS);
}

static struct actions player;

static void act(void *arg, const struct step *step, bool inside);

static int find(const struct actions *a, const tw_action *action)
{
	int id = 0;
	while (id < IDS && a->tasks[id].action != action)
		id++;
	return id;
}

/* The state of an arming is its number. */
static int work(tw_action *action, void *state)
{
	struct actions *a = &player;
	int id = find(a, action), outer = a->running;
	say("run %d %d at %d", id, (int)(intptr_t)state, (int)now_ms(a));
	a->running = id;
	a->tasks[id].armed_ms = -1;
	script_run(a->script, id, act, a);
	a->running = outer;
	return a->tasks[id].fails ? FAILURE + id : 0;
}

static void failed(void *arg, tw_action *action, int failure, size_t closed)
{
	(void)arg;
	(void)action;
	(void)closed;
	say("failed %d", failure - FAILURE);
}

static void wanted(void *arg, bool wanted)
{
	((struct actions *)arg)->wanted = wanted;
}

/*
 * An arming beside one that waits is left out where RxJS runs both, or in another order, unless the
 * step asks for it by "!".
 */
static bool is_double(const struct task *task)
{
	return task->armed_ms >= 0;
}

/* The delay to an instant that is this task's own. */
static int64_t slot_ms(const struct actions *a, int64_t id, int64_t n)
{
	return (now_ms(a) / SLOT_MS + n) * SLOT_MS + id - now_ms(a);
}

static void report(struct actions *a, int failure)
{
	if (failure > 0)
		failed(a, NULL, failure, 0);
	else if (failure < 0)
		say("error %d", failure);
}

static void arm(struct actions *a, const struct step *step, int64_t delay_ms, bool forced)
{
	struct task *task = &a->tasks[step->args[0]];
	if (!forced && is_double(task)) {
		say("skip");
		return;
	}
	if (!task->action)
		MUST(tw_action_create(&task->action, a->scheduler, work, NULL));
	task->armed_ms = delay_ms;
	int error = tw_action_schedule(task->action, (void *)++a->armings, (uint64_t)delay_ms * MS);
	if (error == -ECANCELED)
		task->armed_ms = -1;
	else
		report(a, error);
}

static void advance(struct actions *a, int64_t ms)
{
	MUST(tw_clock_manual_advance_by(a->fixture.clock, (uint64_t)ms * MS));
}

/* The flush is what was wanted. */
static void flush(struct actions *a)
{
	a->wanted = false;
	report(a, tw_action_scheduler_flush(a->scheduler));
}

static void act(void *arg, const struct step *step, bool inside)
{
	struct actions *a = arg;
	struct task *task = &a->tasks[step->args[0]];
	if (step_is(step, "arm") || step_is(step, "arm!"))
		arm(a, step, step->args[1], step_is(step, "arm!"));
	else if (step_is(step, "slot"))
		arm(a, step, slot_ms(a, step->args[0], step->args[1]), true);
	else if (step_is(step, "close") && task->action) {
		tw_action_close(task->action, 0);
		task->armed_ms = -1;
	} else if (step_is(step, "closed"))
		say("closed %d",
		    task->action && tw_action_state(task->action) == TW_ACTION_STATE_CLOSED);
	else if (step_is(step, "now"))
		say("now %d", (int)now_ms(a));
	else if (step_is(step, "fail") && a->running >= 0)
		a->tasks[a->running].fails = true;
	else if (step_is(step, "advance") && !inside)
		advance(a, step->args[0]);
	else if (step_is(step, "flush") && !inside && a->wanted)
		flush(a);
	if (!inside && a->by_caller)
		say("wanted %d", a->wanted);
}

static enum tw_action_kind kind_of(const struct script *script)
{
	return kind_is(script, "async")   ? TW_ACTION_KIND_ASYNC
	       : kind_is(script, "queue") ? TW_ACTION_KIND_QUEUE
	       : kind_is(script, "asap")  ? TW_ACTION_KIND_ASAP
					  : TW_ACTION_KIND_FRAME;
}

void play_actions(struct script *script)
{
	struct actions *a = &player;
	struct tw_action_scheduler_config config = {.size = sizeof config,
						    .kind = kind_of(script),
						    .flags = TW_ACTION_FLAG_CANCEL_BATCH,
						    .failed = failed,
						    .failed_arg = a};
	*a = (struct actions){.script = script, .running = -1};
	a->by_caller = config.kind == TW_ACTION_KIND_ASAP || config.kind == TW_ACTION_KIND_FRAME;
	for (int id = 0; id < IDS; id++)
		a->tasks[id].armed_ms = -1;
	service_open(&a->fixture, MS);
	config.service = a->fixture.service;
	if (a->by_caller) {
		config.flags |= TW_ACTION_FLAG_BY_CALLER;
		config.wanted = wanted;
		config.wanted_arg = a;
	}
	MUST(tw_action_scheduler_create(&a->scheduler, &config));
	script_play(script, act, a);
	for (int id = 0; id < IDS; id++)
		if (a->tasks[id].action)
			tw_action_destroy(a->tasks[id].action);
	MUST(tw_action_scheduler_destroy(a->scheduler));
	service_close(&a->fixture);
}
