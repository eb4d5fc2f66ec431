/* The scheduler: post, cancel, go on, fail, run and advance, in the caller's own loop. */
#include <stdio.h>

#include "test/peers/ours/script.h"

struct scheduler {
	struct script *script;
	struct fixture fixture;
	tw_scheduler *scheduler;
	struct job {
		tw_scheduler_task_id handle;
		bool posted, running;
		bool goes_on, fails; /* what this turn answers */
		bool late;
	} jobs[IDS];
	int running; /* -1: none */
};

static struct scheduler player;

static void act(void *arg, const struct step *step, bool inside);

static int64_t now_ms(void)
{
	return service_ms(&player.fixture);
}

static int turn(struct tw_turn *turn, void *arg)
{
	struct job *job = arg;
	int id = (int)(job - player.jobs);
	say("run %d prio %d late %d at %d", id, (int)tw_priority_current(), turn->did_timeout,
	    (int)now_ms());
	job->running = true;
	job->goes_on = job->fails = false;
	job->late = turn->did_timeout;
	player.running = id;
	script_run(player.script, id, act, &player);
	player.running = -1;
	job->running = false;
	if (job->fails)
		say("failed %d", id);
	return job->fails ? -1 : job->goes_on ? TW_TURN_AGAIN : TW_TURN_DONE;
}

static void post(const struct step *step)
{
	struct job *job = &player.jobs[step->args[0]];
	if (job->posted)
		return;
	*job = (struct job){.posted = true};
	const struct tw_scheduler_task post = {.size = sizeof post,
					       .fn = turn,
					       .arg = job,
					       .priority = (enum tw_priority)step->args[1],
					       .delay_ns = (uint64_t)step->args[2] * MS};
	MUST(tw_scheduler_submit_task(player.scheduler, &post, &job->handle));
}

/*
 * In React a running task that goes on after its cancel is not cancelled. So that is left out,
 * unless asked for by "!".
 */
static void cancel(const struct step *step, bool forced)
{
	struct job *job = &player.jobs[step->args[0]];
	if (!job->posted || (job->running && !forced))
		return;
	tw_scheduler_cancel(player.scheduler, job->handle);
}

/* An expired task of ours has a slice of its own. One of theirs has not. */
static void ask_yield(bool raw)
{
	if (raw || !kind_is(player.script, "slice") || !player.jobs[player.running].late)
		say("yield %d", tw_scheduler_should_yield(player.scheduler));
}

/* The service has no tick thread here: delayed tasks become ready when it is driven. */
static void move_clock(int64_t ms)
{
	MUST(tw_clock_manual_set(player.fixture.clock,
				 tw_clock_now(player.fixture.clock) + (uint64_t)ms * MS));
	tw_service_advance(player.fixture.service, TW_NO_LIMIT);
}

/* All that is ready. */
static void run(void)
{
	int r;
	do
		r = tw_scheduler_run(player.scheduler, TW_NO_LIMIT);
	while (r == TW_SCHEDULER_RUN_MORE);
	if (tw_priority_current() != TW_PRIORITY_NORMAL) /* theirs never has another one here */
		say("prio %d stays", (int)tw_priority_current());
}

static void act(void *arg, const struct step *step, bool inside)
{
	if (step_is(step, "post"))
		post(step);
	else if (step_is(step, "cancel") || step_is(step, "cancel!"))
		cancel(step, step_is(step, "cancel!"));
	else if (step_is(step, "advance"))
		move_clock(step->args[0]);
	else if ((step_is(step, "run") || step_is(step, "run!")) && !inside)
		run();
	else if (!inside)
		return;
	else if (step_is(step, "again"))
		player.jobs[player.running].goes_on = true;
	else if (step_is(step, "fail"))
		player.jobs[player.running].fails = true;
	else if (step_is(step, "yield") || step_is(step, "yield!"))
		ask_yield(step_is(step, "yield!"));
}

void play_scheduler(struct script *script)
{
	player = (struct scheduler){.script = script, .running = -1};
	service_open(&player.fixture, MS);
	struct tw_scheduler_config config = {.size = sizeof config, .host = TW_HOST_MANUAL};
	if (!kind_is(script, "slice"))
		config.slice_ns = TW_MAX_DELAY_NS;
	MUST(tw_scheduler_create(&player.scheduler, player.fixture.service, &config));
	script_play(script, act, &player);
	MUST(tw_scheduler_destroy(player.scheduler));
	service_close(&player.fixture);
}
