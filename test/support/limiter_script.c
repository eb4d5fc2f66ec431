/* The verbs of limiters' scripts. */
#include "limiter_script.h"

#include <errno.h>
#include <string.h>

#include "misuse_text.h"

struct limited script_home;
static struct load loads[64];

static const int64_t as_given = INT64_MIN;

static const char *in_idle;       /* calls of the next listeners */
static const char *in_idle_event; /* of the next event */

static void expect_job(tw_job job, uint64_t id)
{
	expect_eq(job.id, loads[id - 1].job.id);
}

static void say_started(void *arg, tw_job job, uint64_t id, uint32_t attempt)
{
	expect_job(job, id);
	expect_eq(attempt, loads[id - 1].starts + 1);
	say("started %d", (int)id - 1);
	play_calls(loads[id - 1].in_started);
}

static void say_retried(void *arg, tw_job job, uint64_t id, uint32_t attempt, uint64_t delay_ns)
{
	expect_job(job, id);
	expect_eq(attempt, loads[id - 1].starts);
	say("retried %d after %d", (int)id - 1, (int)(delay_ns / MS));
	play_calls(loads[id - 1].in_retried);
}

static void say_settled(void *arg, tw_job job, const struct tw_job_result *result)
{
	expect_job(job, result->id);
	say("settled %d", (int)result->id - 1);
}

static void say_idle(void *arg)
{
	cr_assert_eq(arg, loads);
	say("idle");
	const char *calls = in_idle_event;
	in_idle_event = NULL;
	play_calls(calls);
}

static void open_limiter(const struct words *given)
{
	struct tw_service_config service = script_service(given);
	struct tw_limiter_config config = limited_config((uint32_t)option_of(given, "limit", 1));
	config.max_pending = (uint32_t)option_of(given, "pending", 0);
	config.rate_starts = (uint32_t)option_of(given, "rate", 0);
	config.rate_interval_ns = ms_of(given, "interval");
	config.flags = (has_word(given, "collect") ? TW_LIMITER_COLLECT : 0) |
		       (has_word(given, "paused_refuses") ? TW_LIMITER_PAUSED_REFUSES : 0) |
		       (has_word(given, "no_queue") ? TW_LIMITER_NO_QUEUE : 0);
	if (has_word(given, "hooks"))
		limited_hook(&config, (struct limited_hooks){.started = say_started,
							     .retried = say_retried,
							     .settled = say_settled,
							     .idle = say_idle,
							     .arg = loads});
	if (has_word(given, "inline")) {
		config.executor = tw_executor_inline();
		service.tick_ns = 50000;
	}
	memset(loads, 0, sizeof loads);
	in_idle = NULL;
	in_idle_event = given->in_release;
	tw_set_misuse_hook(keep_text);
	limited_open_in(&script_home, &service, &config);
	if (!has_word(given, "paused"))
		expect_eq(tw_limiter_set_paused(script_home.limiter, false), 0);
}

static void close_limiter(void)
{
	limited_close(&script_home);
	for (const struct load *load = loads; load < loads + 64; load++) {
		expect_eq(load->dones, load->has_done);
		expect_eq(load->releases, load->is_accepted);
	}
}

/* ----------------------------------------------------------------------- jobs */

static bool ask(void *arg, tw_job job, int error, uint32_t attempt, int64_t *delay_ns)
{
	const struct load *load = arg;
	expect_eq(load->job.id, job.id);
	say("asked about %s of %u, %d", error_name(error), attempt, (int)(*delay_ns / (int64_t)MS));
	play_calls(load->in_asked);
	if (load->chosen_ns != as_given)
		*delay_ns = load->chosen_ns;
	return !load->refuses;
}

/* A choice that is none is in ns. */
static void set_calls(struct load *load, const struct words *words)
{
	int64_t chosen = option_of(words, "chosen", as_given);
	bool is_choice = chosen > 0 && chosen != INT64_MAX;
	const struct {
		const char *word, **calls;
	} places[] = {
	    {"asks", &load->in_asked},         {"in_started", &load->in_started},
	    {"in_retried", &load->in_retried}, {"in_stop", &load->in_stop},
	    {"in_done", &load->in_done},       {"submit", &load->in_run},
	};
	size_t i = 0;
	while (i < sizeof places / sizeof *places - 1 && !has_word(words, places[i].word))
		i++;
	*places[i].calls = words->in_run;
	load->in_release = words->in_release;
	load->refuses = has_word(words, "refuse");
	load->chosen_ns = is_choice ? chosen * (int64_t)MS : chosen;
}

static struct tw_limiter_task script_task(int64_t n, const struct words *words)
{
	struct load *load = &loads[n];
	*load = (struct load){.home = &script_home,
			      .number = (int)n,
			      .takes_ns = ms_of(words, "takes"),
			      .answer = (int)option_of(words, "error", 0),
			      .fails = (unsigned)option_of(words, "fails", 0),
			      .stays_ns = ms_of(words, "stays"),
			      .held = has_word(words, "held")};
	struct tw_limiter_task task = load_task(load);
	set_calls(load, words);
	task.flags |= has_word(words, "async") ? TW_LIMITER_TASK_ASYNC : 0;
	task.flags |= has_word(words, "keep") ? TW_LIMITER_TASK_KEEP : 0;
	task.priority = (int32_t)option_of(words, "priority", 0);
	task.permits = (uint32_t)option_of(words, "permits", 0);
	task.queue_timeout_ns = ms_of(words, "queue");
	task.attempt_timeout_ns = ms_of(words, "attempt");
	task.timeout_ns = ms_of(words, "total");
	bool is_late = has_word(words, "too_late");
	task.flags |= is_late ? TW_LIMITER_TASK_WAIT_UNTIL : 0;
	task.wait_ns = is_late ? 1 : has_word(words, "waits") ? TW_FOREVER : 0;
	if (has_word(words, "no_stop"))
		task.stop = NULL;
	if (has_word(words, "no_done"))
		task.done = NULL;
	if (has_word(words, "bare"))
		task.done = NULL, task.stop = NULL, task.release = NULL;
	task.retry = (struct tw_retry){.count = (uint32_t)option_of(words, "retries", 0),
				       .delay_ns = ms_of(words, "delay"),
				       .factor_x100 = (uint32_t)option_of(words, "factor", 0),
				       .cap_ns = ms_of(words, "cap"),
				       .deadline_ns = ms_of(words, "deadline"),
				       .allow = has_word(words, "asks") ? ask : NULL};
	return task;
}

static void note_answer(int64_t n, const struct tw_limiter_task *task, int r)
{
	struct load *load = &loads[n];
	load->is_accepted = r == 0 && task->release;
	load->has_done = r == 0 && task->done;
	expect_eq(load->job.id != 0, r == 0);
	say_answer(r);
}

static void submit(const struct words *words)
{
	EACH_NUMBER (words, n) {
		struct tw_limiter_task task = script_task(n, words);
		note_answer(n, &task,
			    tw_limiter_submit_task(script_home.limiter, &task, &loads[n].job));
	}
}

static struct submitter submitter;

static void submit_waiting(const struct words *words)
{
	int64_t n = words->number[0];
	struct tw_limiter_task task = script_task(n, words);
	if (has_word(words, "until")) {
		task.flags |= TW_LIMITER_TASK_WAIT_UNTIL;
		task.wait_ns = tw_clock_now(tw_clock_monotonic()) + 50 * SECOND;
	}
	submitter_begin(&submitter, &loads[n], task);
}

static void await_submitted(const struct words *words)
{
	int r = submitter_end(&submitter);
	note_answer(submitter.load->number, &submitter.task, r);
}

static struct load *load_of(const struct words *words)
{
	expect_gt(words->numbers, 0);
	return &loads[words->number[0]];
}

static void complete_by(const struct words *words, tw_job job)
{
	int error = words->numbers > 1 ? (int)words->number[1] : 0;
	int r = tw_job_complete(script_home.limiter, job, error, load_of(words));
	if (r == TW_JOB_LATE)
		say("LATE");
	else
		say_answer(r);
}

static void end(const struct words *words)
{
	tw_job attempt = load_of(words)->attempt;
	attempt.attempt =
	    (uint64_t)option_of(words, "attempt", (int64_t)load_of(words)->attempt.attempt);
	complete_by(words, attempt);
}

static void complete(const struct words *words)
{
	complete_by(words, load_of(words)->job);
}

static void cancel(const struct words *words)
{
	EACH_NUMBER (words, n)
		say_outcome(tw_job_cancel(script_home.limiter, loads[n].job));
}

static void set_priority(const struct words *words)
{
	int r = tw_job_set_priority(script_home.limiter, load_of(words)->job,
				    (int32_t)words->number[1]);
	if (r == TW_GONE)
		say("GONE");
	else
		say_answer(r);
}

/* ----------------------------------------------------------------- the limiter */

static void pause_it(const struct words *words)
{
	say_answer(tw_limiter_set_paused(script_home.limiter, true));
}

static void resume_it(const struct words *words)
{
	say_answer(tw_limiter_set_paused(script_home.limiter, false));
}

static void close_it(const struct words *words)
{
	uint64_t timeout_ns = words->numbers ? (uint64_t)words->number[0] * MS : 0;
	say_answer(tw_limiter_close(script_home.limiter,
				    has_word(words, "drain") ? TW_CLOSE_DRAIN : TW_CLOSE_DROP,
				    timeout_ns));
}

static void listener(void *arg, const struct tw_job_result *results, size_t n)
{
	say("listener %d", *(int *)arg);
	play_calls(in_idle);
	for (size_t i = 0; i < n; i++) {
		struct load *load = &loads[results[i].id - 1];
		say("result %d %s", (int)results[i].id - 1, load_status(&results[i]));
		expect_eq(results[i].attempts, load->starts);
		cr_assert_eq(results[i].value, load->starts ? load : NULL);
	}
}

static void destroy_it(const struct words *words)
{
	say_answer(tw_limiter_destroy(script_home.limiter));
}

static void set_limit(const struct words *words)
{
	say_answer(tw_limiter_set_max_concurrency(script_home.limiter, (uint32_t)words->number[0]));
}

static void set_rate(const struct words *words)
{
	uint64_t ns = words->numbers > 1 ? (uint64_t)words->number[1] * MS : TW_FOREVER;
	say_answer(tw_limiter_set_rate(script_home.limiter, (uint32_t)words->number[0], ns));
}

static void wait_idle(const struct words *words)
{
	uint64_t timeout_ns = words->numbers ? (uint64_t)words->number[0] * MS : 0;
	say_answer(tw_limiter_wait_idle(script_home.limiter, timeout_ns));
}

static void listen_idle(const struct words *words)
{
	static int numbers[100];
	in_idle = words->in_run;
	EACH_NUMBER (words, n) {
		numbers[n] = n;
		say_answer(tw_limiter_on_idle(script_home.limiter, listener, &numbers[n]));
	}
}

static void say_misuse(const struct words *words)
{
	say("%s", text);
}

static const char *const states[] = {"QUEUED",  "RUNNING", "RETRYING",
				     "SETTLED", "GONE",    "STOPPING"};

static void say_state(const struct words *words)
{
	EACH_NUMBER (words, n) {
		const struct load *load = &loads[n];
		int state = tw_job_state(script_home.limiter, load->job);
		if (load->attempt.id)
			expect_eq(tw_job_state(script_home.limiter, load->attempt), state);
		say("%s", states[state]);
	}
}

static void say_wait(const struct words *words)
{
	struct tw_job_result result = {.id = 0};
	struct load *load = &loads[words->number[0]];
	uint64_t timeout_ns = words->numbers > 1 ? (uint64_t)words->number[1] * MS : 0;
	int r = tw_job_wait(script_home.limiter, load->job, timeout_ns, &result);
	if (r == TW_GONE)
		say("GONE");
	else if (r)
		say_answer(r);
	else
		say("was %s", load_status(&result));
	if (r == 0 && load->dones)
		cr_assert_eq(result.value, load->result.value);
}

static void say_released(const struct words *words)
{
	EACH_NUMBER (words, n)
		say("%s", loads[n].releases ? "released" : "not released");
}

#define GAUGE(name) GAUGE_OF(tw_limiter_stats, name)

static const struct gauge stats_gauges[] = {
    GAUGE(max_concurrency),
    GAUGE(running),
    GAUGE(late),
    GAUGE(permits),
    GAUGE(debt),
    GAUGE(pending),
    GAUGE(retrying),
    GAUGE(added),
    GAUGE(succeeded),
    GAUGE(failed),
    GAUGE(cancelled),
    GAUGE(timed_out),
    GAUGE(dropped),
    GAUGE(retried),
    GAUGE(rejected),
    GAUGE(refused_completions),
    GAUGE(run_mean_ns),
    GAUGE(queue_mean_ns),
    {NULL, 0},
};

static void say_stats(const struct words *words)
{
	struct tw_limiter_stats stats = limited_stats(&script_home);
	say_gauges(words, stats_gauges, &stats);
}

struct figures {
	uint64_t id, attempts, queued, run;
};

static void say_result(const struct words *words)
{
	static const struct gauge gauges[] = {{"id", offsetof(struct figures, id)},
					      {"attempts", offsetof(struct figures, attempts)},
					      {"queued", offsetof(struct figures, queued)},
					      {"run", offsetof(struct figures, run)},
					      {NULL, 0}};
	const struct tw_job_result *result = &loads[words->number[0]].result;
	struct figures figures = {result->id, result->attempts, result->queued_ns / MS,
				  result->run_ns / MS};
	struct words names = {.n = words->n - 1};
	memcpy(&names.word[1], &words->word[2], sizeof names.word - 2 * sizeof names.word[0]);
	say_gauges(&names, gauges, &figures);
}

static const struct verb verbs[] = {
    {"misuse", say_misuse},
    {"submit", submit},
    {"submit_waiting", submit_waiting},
    {"submitted", await_submitted},
    {"end", end},
    {"complete", complete},
    {"cancel", cancel},
    {"state", say_state},
    {"priority", set_priority},
    {"wait", say_wait},
    {"released", say_released},
    {"pause", pause_it},
    {"resume", resume_it},
    {"close", close_it},
    {"destroy", destroy_it},
    {"limit", set_limit},
    {"rate", set_rate},
    {"wait_idle", wait_idle},
    {"on_idle", listen_idle},
    {"stats", say_stats},
    {"result", say_result},
    {NULL, NULL},
};

const struct stage limiter_stage = {
    .open = open_limiter,
    .close = close_limiter,
    .rig = &script_home.rig,
    .queue = &script_home.queue,
    .verbs = verbs,
};
