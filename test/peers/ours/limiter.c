/*
 * Limiters and semaphores: asynchronous jobs that the script ends. All run on a queue that is
 * pumped after each step.
 *
 * Knobs: permits; then for kind "prate" starts and their interval, for "bottleneck" the time
 * between two starts and max_pending.
 */
#include <errno.h>
#include <stdio.h>

#include "test/peers/ours/script.h"

struct limiter {
	struct script *script;
	struct fixture fixture;
	tw_manual *queue;
	tw_limiter *limiter;
	tw_semaphore *semaphore; /* kind "semaphore": in place of the limiter */
	struct job {
		tw_job handle;
		tw_waiter waiter;
		bool submitted, started, ended;
		bool completed;
		bool holds; /* its permit beyond its timeout */
	} jobs[IDS];
};

static struct limiter player;

static void act(void *arg, const struct step *step, bool inside);

static int id_of(const void *job)
{
	return (int)((const struct job *)job - player.jobs);
}

static void started(struct job *job)
{
	job->started = true;
	say("start %d at %d", id_of(job), (int)service_ms(&player.fixture));
	script_run(player.script, id_of(job), act, &player);
}

static void ended(struct job *job, const char *how)
{
	job->ended = true;
	say("finish %d %s at %d", id_of(job), how, (int)service_ms(&player.fixture));
}

static int run_job(void *arg, struct tw_job_run *run)
{
	started(arg);
	return TW_JOB_PENDING;
}

static void run_waiter(void *arg)
{
	started(arg);
}

static void done(void *arg, const struct tw_job_result *result)
{
	static const char *const names[] = {"ok", "failed", NULL, "timeout", "dropped"};
	if (result->status == TW_JOB_STATUS_CANCELLED) /* cleared: theirs says nothing */
		((struct job *)arg)->ended = true;
	else
		ended(arg, names[result->status]);
}

/* Theirs gives the permit back at the timeout, whether the job has ended or not. */
static void stop(void *arg, tw_job job, enum tw_job_status why)
{
	if (why == TW_JOB_STATUS_TIMED_OUT && !((struct job *)arg)->holds)
		tw_job_complete(player.limiter, job, -ETIMEDOUT, NULL);
}

static void submit(const struct step *step)
{
	struct job *job = &player.jobs[step->args[0]];
	if (job->submitted)
		return;
	job->submitted = true;
	job->holds = step_is(step, "submit!");
	if (player.semaphore) {
		MUST(
		    tw_semaphore_acquire_async(player.semaphore, 1, run_waiter, job, &job->waiter));
		return;
	}
	const struct tw_limiter_task task = {.size = sizeof task,
					     .fn = run_job,
					     .arg = job,
					     .done = done,
					     .flags = TW_LIMITER_TASK_ASYNC,
					     .priority = (int32_t)step->args[1],
					     .attempt_timeout_ns = (uint64_t)step->args[2] * MS,
					     .stop = stop};
	int r = tw_limiter_submit_task(player.limiter, &task, &job->handle);
	if (r == -EAGAIN)
		ended(job, "refused");
	else
		must(r, "tw_limiter_submit_task");
}

static void complete(const struct step *step)
{
	struct job *job = &player.jobs[step->args[0]];
	if (!job->started || (job->ended && !job->holds) || job->completed)
		return;
	job->completed = true;
	if (player.semaphore) {
		ended(job, "ok");
		MUST(tw_semaphore_release(player.semaphore, 1));
	} else {
		int r =
		    tw_job_complete(player.limiter, job->handle, step->args[1] ? -EIO : 0, NULL);
		if (r != TW_JOB_LATE)
			must(r, "tw_job_complete");
	}
}

/* Cancels all that wait. */
static void clear(void)
{
	for (int id = 0; id < IDS; id++) {
		struct job *job = &player.jobs[id];
		if (!job->submitted || job->started || job->ended)
			continue;
		job->ended = true;
		if (player.semaphore)
			tw_semaphore_cancel(player.semaphore, job->waiter);
		else
			tw_job_cancel(player.limiter, job->handle);
	}
}

static void limit(int64_t permits)
{
	if (player.semaphore)
		MUST(tw_semaphore_set_capacity(player.semaphore, (int32_t)permits));
	else
		MUST(tw_limiter_set_max_concurrency(player.limiter, (uint32_t)permits));
}

static void idle(void *arg, const struct tw_job_result *results, size_t n)
{
	say("idle");
}

static void pump(void)
{
	while (tw_manual_pump(player.queue, TW_NO_LIMIT) > 0) {
	}
}

static void advance(int64_t ms)
{
	for (int64_t i = 0; i < ms; i++) {
		MUST(tw_clock_manual_advance_by(player.fixture.clock, MS));
		pump();
	}
}

static void act(void *arg, const struct step *step, bool inside)
{
	if (step_is(step, "submit") || step_is(step, "submit!"))
		submit(step);
	else if (step_is(step, "complete"))
		complete(step);
	else if (step_is(step, "clear"))
		clear();
	else if (step_is(step, "limit"))
		limit(step->args[0]);
	else if (step_is(step, "pause"))
		MUST(tw_limiter_set_paused(player.limiter, true));
	else if (step_is(step, "resume"))
		MUST(tw_limiter_set_paused(player.limiter, false));
	else if (step_is(step, "idle"))
		MUST(tw_limiter_on_idle(player.limiter, idle, NULL));
	else if (step_is(step, "advance") && !inside)
		advance(step->args[0]);
	if (!inside)
		pump();
}

static void open_limiter(const struct script *script)
{
	struct tw_limiter_config config = {.size = sizeof config,
					   .max_concurrency = (uint32_t)script->knobs[0],
					   .flags = TW_LIMITER_NONBLOCKING,
					   .executor = tw_manual_executor(player.queue)};
	if (kind_is(script, "prate")) {
		config.rate_starts = (uint32_t)script->knobs[1];
		config.rate_interval_ns = (uint64_t)script->knobs[2] * MS;
	} else if (kind_is(script, "bottleneck")) {
		config.rate_starts = script->knobs[1] != 0;
		config.rate_interval_ns = (uint64_t)script->knobs[1] * MS;
		config.max_pending = (uint32_t)script->knobs[2];
	}
	MUST(tw_limiter_create(&player.limiter, player.fixture.service, &config));
	MUST(tw_limiter_set_paused(player.limiter, false));
}

/* What is left of the jobs ends without a word. */
static void end_limiter(void)
{
	int r;
	tw_limiter_set_paused(player.limiter, true);
	clear();
	for (int id = 0; id < IDS; id++)
		if (player.jobs[id].started && !player.jobs[id].ended)
			tw_job_complete(player.limiter, player.jobs[id].handle, 0, NULL);
	do {
		pump();
		tw_clock_manual_advance_by(player.fixture.clock, MS);
	} while ((r = tw_limiter_destroy(player.limiter)) == -EBUSY);
	must(r, "tw_limiter_destroy");
}

static void end_semaphore(void)
{
	clear();
	do {
		pump();
		tw_clock_manual_advance_by(player.fixture.clock, MS);
	} while (tw_semaphore_destroy(player.semaphore) == -EBUSY);
}

void play_limiter(struct script *script)
{
	player = (struct limiter){.script = script};
	service_open(&player.fixture, MS);
	MUST(tw_manual_create(&player.queue, NULL));
	if (kind_is(script, "semaphore"))
		MUST(tw_semaphore_create(&player.semaphore, player.fixture.service,
					 tw_manual_executor(player.queue),
					 (int32_t)script->knobs[0]));
	else
		open_limiter(script);
	script_play(script, act, &player);
	say("> -1"); /* the end is no part of the comparison */
	if (player.semaphore)
		end_semaphore();
	else
		end_limiter();
	service_close(&player.fixture);
	MUST(tw_manual_destroy(player.queue));
}
