/* Verbs of limiters' scripts that ask. */
#include <string.h>

#include "limiter_script.h"

static const char *const states[] = {"QUEUED", "RUNNING", "RETRYING", "SETTLED", "GONE"};

void limiter_say_state(const struct words *words)
{
	EACH_NUMBER (words, n) {
		const struct load *load = &script_loads[n];
		int state = tw_job_state(script_home.limiter, load->job);
		if (load->attempt.id)
			expect_eq(tw_job_state(script_home.limiter, load->attempt), state);
		say("%s", states[state]);
	}
}

void limiter_say_wait(const struct words *words)
{
	struct tw_job_result result = {.id = 0};
	struct load *load = &script_loads[words->number[0]];
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

/* By the handle, and if there was an attempt, by that too. */
void limiter_say_cancelled(const struct words *words)
{
	EACH_NUMBER (words, n) {
		const struct load *load = &script_loads[n];
		bool is = tw_job_is_cancelled(script_home.limiter, load->job);
		if (load->attempt.id)
			expect_eq(tw_job_is_cancelled(script_home.limiter, load->attempt), is);
		say("%s", is ? "is cancelled" : "goes on");
	}
}

void limiter_say_released(const struct words *words)
{
	EACH_NUMBER (words, n)
		say("%s", script_loads[n].releases ? "released" : "not released");
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

void limiter_say_stats(const struct words *words)
{
	struct tw_limiter_stats stats = limited_stats(&script_home);
	say_gauges(words, stats_gauges, &stats);
}

struct figures {
	uint64_t id, attempts, queued, run;
};

void limiter_say_result(const struct words *words)
{
	static const struct gauge gauges[] = {{"id", offsetof(struct figures, id)},
					      {"attempts", offsetof(struct figures, attempts)},
					      {"queued", offsetof(struct figures, queued)},
					      {"run", offsetof(struct figures, run)},
					      {NULL, 0}};
	const struct tw_job_result *result = &script_loads[words->number[0]].result;
	struct figures figures = {result->id, result->attempts, result->queued_ns / MS,
				  result->run_ns / MS};
	struct words names = {.n = words->n - 1};
	memcpy(&names.word[1], &words->word[2], sizeof names.word - 2 * sizeof names.word[0]);
	say_gauges(&names, gauges, &figures);
}
