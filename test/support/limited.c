#include "limited.h"

#include <errno.h>
#include <sched.h>

#include "executor/limiter/internal.h"
#include "script.h"

struct tw_limiter_config limited_config(uint32_t max_concurrency)
{
	return (struct tw_limiter_config){.size = sizeof(struct tw_limiter_config),
					  .max_concurrency = max_concurrency,
					  .seed = 1};
}

static struct limited_hooks hooked;

static void call_hook(void *arg, const struct tw_limiter_event *event)
{
	switch (event->kind) {
	case TW_LIMITER_EVENT_STARTED:
		if (hooked.started)
			hooked.started(arg, event->job, event->id, event->attempt);
		break;
	case TW_LIMITER_EVENT_RETRIED:
		if (hooked.retried)
			hooked.retried(arg, event->job, event->id, event->attempt, event->delay_ns);
		break;
	case TW_LIMITER_EVENT_SETTLED:
		expect_eq(event->id, event->result->id);
		if (hooked.settled)
			hooked.settled(arg, event->job, event->result);
		break;
	case TW_LIMITER_EVENT_IDLE:
		expect_eq(event->job.id, 0);
		if (hooked.idle)
			hooked.idle(arg);
		break;
	default:
		cr_assert_fail("unknown kind of event");
	}
}

void limited_hook(struct tw_limiter_config *config, struct limited_hooks hooks)
{
	hooked = hooks;
	config->event = call_hook;
	config->event_arg = hooks.arg;
}

void limited_open(struct limited *home, const struct tw_limiter_config *config)
{
	limited_open_in(home, NULL, config);
}

void limited_open_in(struct limited *home, const struct tw_service_config *service,
		     const struct tw_limiter_config *config)
{
	struct tw_limiter_config mine = *config;
	mine.flags |= TW_LIMITER_PAUSED;
	*home = (struct limited){.starts = 0};
	rig_open(&home->rig, service);
	queue_executor_open(&home->queue);
	if (!mine.executor)
		mine.executor = &home->queue.base;
	expect_eq(tw_limiter_create(&home->limiter, home->rig.service, &mine), 0);
}

void limited_close(struct limited *home)
{
	struct tw_limiter_stats stats = limited_stats(home);
	expect_eq(stats.added, stats.succeeded + stats.failed + stats.cancelled + stats.timed_out +
				   stats.dropped);
	expect_eq(stats.running, 0);
	expect_eq(stats.pending, 0);
	expect_eq(tw_limiter_destroy(home->limiter), 0);
	expect_eq(stats_of(home->rig.service).pending, 0);
	queue_executor_close(&home->queue);
	rig_close(&home->rig);
	home->limiter = NULL;
}

void limited_pump(struct limited *home)
{
	queue_executor_run_all(&home->queue);
}

void limited_advance(struct limited *home, uint64_t ns)
{
	limited_pump(home);
	for (; ns >= MS; ns -= MS) {
		rig_advance(&home->rig, MS);
		limited_pump(home);
	}
}

void limited_pass(struct limited *home, uint64_t ns)
{
	expect_eq(tw_clock_manual_set(home->rig.clock, rig_now(&home->rig) + ns), 0);
}

uint64_t limited_now(const struct limited *home)
{
	return rig_now(&home->rig) - RIG_START_NS;
}

struct tw_limiter_stats limited_stats(struct limited *home)
{
	struct tw_limiter_stats stats = {.size = sizeof(stats)};
	expect_eq(tw_limiter_stats(home->limiter, &stats), 0);
	return stats;
}

static const char *const status_words[] = {"ok", "failed", "cancelled", "timed out", "dropped"};
static const int status_errors[] = {0, 0, -ECANCELED, -ETIMEDOUT, -ESHUTDOWN};

const char *load_status(const struct tw_job_result *result)
{
	static char words[32];
	const char *status = status_words[result->status];
	if (result->error == status_errors[result->status])
		return status;
	snprintf(words, sizeof words, "%s %s", status, error_name(result->error));
	return words;
}

static int answer_of(const struct load *load)
{
	return load->fails && load->starts > load->fails ? 0 : load->answer;
}

static void complete(void *arg)
{
	struct load *load = arg;
	tw_job_complete(load->home->limiter, load->attempt, answer_of(load), load);
}

static int run(void *arg, struct tw_job_run *run)
{
	struct load *load = arg;
	struct limited *home = load->home;
	load->attempt = run->job;
	load->result.id = run->id;
	if (load->starts < LOAD_ATTEMPTS)
		load->started_ns[load->starts] = limited_now(home);
	load->starts++;
	say("start %d", load->number);
	home->starts++;
	limited_pass(home, load->stays_ns);
	load->stays_ns = 0;
	play_calls(load->in_run);
	if (load->held)
		return TW_JOB_PENDING;
	if (load->takes_ns) {
		int r = tw_schedule(home->rig.service, load->takes_ns, complete, load, NULL);
		return r ? r : TW_JOB_PENDING;
	}
	run->value = load;
	return answer_of(load);
}

static void done(void *arg, const struct tw_job_result *result)
{
	struct load *load = arg;
	load->dones++;
	load->result = *result;
	say("%d %s", load->number, load_status(result));
	load->settled_in = current_step();
	play_calls(load->in_done);
}

static void stop(void *arg, tw_job job, enum tw_job_status why)
{
	struct load *load = arg;
	load->stops++;
	expect_ge(job.attempt, load->starts); /* of no earlier attempt */
	say("stop %d %s", load->number, status_words[why]);
	play_calls(load->in_stop);
}

static void release(void *arg)
{
	struct load *load = arg;
	load->releases++;
	if (current_step() != load->settled_in)
		say("release %d", load->number);
	play_calls(load->in_release);
}

struct tw_limiter_task load_task(struct load *load)
{
	return (struct tw_limiter_task){
	    .size = sizeof(struct tw_limiter_task),
	    .fn = run,
	    .arg = load,
	    .done = done,
	    .stop = stop,
	    .release = release,
	    .flags = load->held || load->takes_ns ? TW_LIMITER_TASK_ASYNC : 0};
}

void load_submit_task(struct load *load, const struct tw_limiter_task *task)
{
	expect_eq(tw_limiter_submit_task(load->home->limiter, task, &load->job), 0);
	expect_ne(load->job.id, 0);
}

void load_submit(struct load *load)
{
	struct tw_limiter_task task = load_task(load);
	load_submit_task(load, &task);
}

void expect_settled(const struct load *load, enum tw_job_status status, int error)
{
	expect_eq(load->dones, 1);
	expect_eq(load->result.status, status);
	expect_eq(load->result.error, error);
}

int job_succeeds(void *arg, struct tw_job_run *run)
{
	return 0;
}

static void await_sleeper(struct tw_limiter *limiter, const uint32_t *sleepers)
{
	for (bool sleeps = false; !sleeps; sched_yield()) {
		tw__object_lock(&limiter->object);
		sleeps = *sleepers;
		tw__object_unlock(&limiter->object);
	}
}

void await_job_waiter(tw_limiter *limiter, tw_job handle)
{
	for (bool sleeps = false; !sleeps; sched_yield()) {
		tw__object_lock(&limiter->object);
		struct tw__node *node = tw__node_find(&limiter->nodes, &limiter->object, handle.id);
		sleeps = ((struct tw__job *)(void *)node)->waiters;
		tw__object_unlock(&limiter->object);
	}
}

void limited_await_room_waiter(struct limited *home)
{
	await_sleeper(home->limiter, &home->limiter->room_sleepers);
}

void limited_await_end_waiter(struct limited *home)
{
	await_sleeper(home->limiter, &home->limiter->object.sleepers);
}

static void *submit_when_there_is_room(void *arg)
{
	struct submitter *self = arg;
	self->answer =
	    tw_limiter_submit_task(self->load->home->limiter, &self->task, &self->load->job);
	return NULL;
}

void submitter_begin(struct submitter *submitter, struct load *load, struct tw_limiter_task task)
{
	*submitter = (struct submitter){.load = load, .task = task, .answer = 1};
	if (!task.wait_ns)
		submitter->task.wait_ns = TW_FOREVER;
	expect_eq(pthread_create(&submitter->thread, NULL, submit_when_there_is_room, submitter),
		  0);
	limited_await_room_waiter(load->home);
}

int submitter_end(struct submitter *submitter)
{
	expect_eq(pthread_join(submitter->thread, NULL), 0);
	return submitter->answer;
}
