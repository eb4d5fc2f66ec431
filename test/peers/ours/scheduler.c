/* The scheduler: post, cancel, go on, fail, run and advance, in the caller's own loop. */
#include <stdio.h>

#include "test/peers/ours/script.h"

enum { SLICE_MS = 5 };

struct scheduler {
	struct script *script;
	struct fixture fixture;
	tw_scheduler *scheduler;
	struct job {
		tw_scheduler_task_id handle;
		bool posted, running, ended;
		bool goes_on, fails; /* what this turn answers */
		bool late;
		int64_t start_ms, expiration_ms;
		int number; /* of its post */
	} jobs[IDS];
	int posts;
	int running; /* -1: none */
	int64_t slice_begin_ms;
};

static const int64_t timeouts_ms[] = {5000, -1, 250, 5000, 10000, 1073741823};

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
	job->ended = job->fails || !job->goes_on;
	if (job->fails)
		say("failed %d", id);
	return job->fails ? -1 : job->goes_on ? TW_TURN_AGAIN : TW_TURN_DONE;
}

static void post(const struct step *step)
{
	struct job *job = &player.jobs[step->args[0]];
	if (job->posted)
		return;
	int64_t priority = step->args[1], delay_ms = step->args[2];
	*job =
	    (struct job){.posted = true, .start_ms = now_ms() + delay_ms, .number = player.posts++};
	job->expiration_ms = job->start_ms + timeouts_ms[priority];
	const struct tw_scheduler_task post = {.size = sizeof post,
					       .fn = turn,
					       .arg = job,
					       .priority = (enum tw_priority)priority,
					       .delay_ns = (uint64_t)delay_ms * MS};
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
	job->ended |= !job->running;
}

/* Ours also gives way to a more urgent task. Theirs does not. */
static bool is_urged(const struct job *current)
{
	for (int id = 0; id < IDS; id++) {
		const struct job *job = &player.jobs[id];
		if (job->posted && !job->ended && job != current && job->start_ms <= now_ms() &&
		    (job->expiration_ms < current->expiration_ms ||
		     (job->expiration_ms == current->expiration_ms &&
		      job->number < current->number)))
			return true;
	}
	return false;
}

static bool is_slice_over(void)
{
	return kind_is(player.script, "slice") && now_ms() - player.slice_begin_ms >= SLICE_MS;
}

/* An expired task of ours has a slice of its own. One of theirs has not. */
static void ask_yield(bool raw)
{
	if (!raw && kind_is(player.script, "slice") && player.jobs[player.running].late)
		return;
	bool yields = tw_scheduler_should_yield(player.scheduler),
	     urged = is_urged(&player.jobs[player.running]);
	if (raw)
		say("yield %d", yields);
	else if (urged && !yields && !player.jobs[player.running].late)
		say("yield missed");
	else
		say("yield %d", yields && !(urged && !is_slice_over()));
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
	do {
		player.slice_begin_ms = now_ms();
		r = tw_scheduler_run(player.scheduler, TW_NO_LIMIT);
	} while (r == TW_SCHEDULER_RUN_MORE);
	if (tw_priority_current() != TW_PRIORITY_NORMAL) /* theirs never has another one here */
		say("prio %d stays", (int)tw_priority_current());
}

static void act(void *arg, const struct step *step, bool inside)
{
	(void)arg;
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
