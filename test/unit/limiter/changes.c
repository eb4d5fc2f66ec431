/* What changes while a limiter runs: rate and priority. By a manual clock. */
#include <errno.h>
#include <stdlib.h>

#include "test/support/faults.h"
#include "test/support/limiter_suite.h"
#include "test/support/misuse_text.h"
#include "test/support/random.h"

static void open_with(struct tw_limiter_config config)
{
	tw_set_misuse_hook(keep_text);
	limited_open(&home, &config);
	expect_eq(tw_limiter_resume(home.limiter), 0);
}

/* ---------------------------------------------------------------------- rate */

static struct tw_limiter_config rated(uint32_t starts, uint64_t interval_ns)
{
	struct tw_limiter_config config = limited_config(64);
	config.rate_starts = starts;
	config.rate_interval_ns = interval_ns;
	return config;
}

static void submit_all(struct load *loads, int n)
{
	for (int i = 0; i < n; i++) {
		loads[i] = LOAD(i);
		load_submit(&loads[i]);
	}
	limited_pump(&home);
}

Test(limiter_changes, higher_rate_starts_jobs_now)
{
	struct load loads[8];
	open_with(rated(2, 100 * MS));
	submit_all(loads, 8);
	expect_eq(home.starts, 2);
	limited_advance(&home, 10 * MS);
	expect_eq(tw_limiter_set_rate(home.limiter, 5, 100 * MS), 0);
	limited_pump(&home);
	expect_eq(home.starts, 5);
	limited_advance(&home, 89 * MS);
	expect_eq(home.starts, 5);
	limited_advance(&home, MS);
	expect_eq(home.starts, 7); /* two tokens are back at 100 ms */
	limited_advance(&home, 10 * MS);
	expect_eq(home.starts, 8);
	close_all();
}

Test(limiter_changes, shorter_interval_returns_tokens_earlier)
{
	struct load loads[4];
	open_with(rated(2, 1000 * MS));
	submit_all(loads, 4);
	limited_advance(&home, 20 * MS);
	expect_eq(tw_limiter_set_rate(home.limiter, 2, 50 * MS), 0);
	limited_advance(&home, 29 * MS);
	expect_eq(home.starts, 2);
	limited_advance(&home, MS);
	expect_eq(home.starts, 4);
	close_all();
}

Test(limiter_changes, lower_rate_counts_the_starts_before_it)
{
	struct load loads[8];
	open_with(rated(4, 40 * MS));
	submit_all(loads, 3);
	limited_advance(&home, 10 * MS);
	for (int i = 3; i < 8; i++) {
		loads[i] = LOAD(i);
		load_submit(&loads[i]);
	}
	limited_pump(&home);
	expect_eq(home.starts, 4); /* at 0: three; at 10: one */
	expect_eq(tw_limiter_set_rate(home.limiter, 2, 60 * MS), 0);
	limited_advance(&home, 49 * MS);
	expect_eq(home.starts, 4);
	limited_advance(&home, MS); /* 60: the last but one is an interval ago */
	expect_eq(home.starts, 5);
	limited_advance(&home, 10 * MS);
	expect_eq(home.starts, 6);
	limited_advance(&home, 60 * MS);
	expect_eq(home.starts, 8);
	close_all();
}

/* As a controller does that halves the rate on an error, and then raises it again. */
Test(limiter_changes, rate_that_was_lower_for_a_moment_counts_all_starts_before_it)
{
	struct load loads[12];
	open_with(rated(4, 100 * MS));
	submit_all(loads, 12);
	expect_eq(home.starts, 4);
	limited_advance(&home, 10 * MS);
	expect_eq(tw_limiter_set_rate(home.limiter, 1, 100 * MS), 0);
	limited_advance(&home, 10 * MS);
	expect_eq(tw_limiter_set_rate(home.limiter, 4, 100 * MS), 0);
	limited_advance(&home, 79 * MS);
	expect_eq(home.starts, 4);
	limited_advance(&home, MS);
	expect_eq(home.starts, 8);
	limited_advance(&home, 100 * MS);
	expect_eq(home.starts, 12);
	close_all();
}

static void lower_the_rate(void *arg, tw_job job, uint64_t id, uint32_t attempt)
{
	(void)arg;
	(void)job;
	(void)attempt;
	if (id == 4)
		expect_eq(tw_limiter_set_rate(home.limiter, 1, 100 * MS), 0);
}

/* The job has its token, and has not begun. */
Test(limiter_changes, rate_that_sinks_between_a_token_and_its_start_counts_both)
{
	struct load loads[8];
	struct tw_limiter_config config = rated(4, 100 * MS);
	limited_hook(&config, (struct limited_hooks){.started = lower_the_rate});
	open_with(config);
	submit_all(loads, 8);
	expect_eq(home.starts, 4);
	expect_eq(tw_limiter_set_rate(home.limiter, 4, 100 * MS), 0);
	limited_advance(&home, 99 * MS);
	expect_eq(home.starts, 4);
	limited_advance(&home, MS);
	expect_eq(home.starts, 8);
	close_all();
}

/* Starts of the latest rates: after each change at most `starts` in a span of the interval. */
Test(limiter_changes, random_rates_are_kept_from_each_change_on, .timeout = 60)
{
	const char *given = getenv("LIMITER_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 0) : tw_clock_now(tw_clock_monotonic());
	static struct load loads[1500];
	uint32_t starts = 3, interval_ms = 10;
	int first = 0, last = 0, since_ms = 0; /* loads that started since the change */
	cr_log_info("LIMITER_SEED=%llu", (unsigned long long)seed);
	open_with(rated(starts, interval_ms * MS));
	for (int i = 0; i < 1500; i++) {
		loads[i] = LOAD(i);
		load_submit(&loads[i]);
	}
	for (int ms = 0; ms < 900 && last < 1490; ms++) {
		limited_pump(&home);
		while (last < 1500 && loads[last].starts)
			last++;
		int in_span = 0;
		for (int i = first; i < last; i++)
			in_span += loads[i].started_ns[0] + interval_ms * MS > limited_now(&home);
		expect_le((uint32_t)in_span, starts);
		/* tokens lie idle for nothing but their interval */
		if (ms - since_ms > (int)interval_ms)
			expect_eq((uint32_t)in_span, starts);
		if (random_percent(&seed, 4)) {
			starts = 1 + (uint32_t)random_below(&seed, 6);
			interval_ms = 1 + (uint32_t)random_below(&seed, 20);
			expect_eq(tw_limiter_set_rate(home.limiter, starts, interval_ms * MS), 0);
			limited_pump(&home);
			while (last < 1500 && loads[last].starts)
				last++;
			first = last;
			since_ms = ms;
		}
		limited_advance(&home, MS);
	}
	tw_limiter_close(home.limiter, TW_CLOSE_DROP, 0);
	limited_pump(&home);
	close_all();
}

Test(limiter_changes, bad_rates_are_refused_and_change_nothing)
{
	struct load loads[4];
	open_started(1);
	tw_set_misuse_hook(keep_text);
	expect_eq(tw_limiter_set_rate(home.limiter, 1, MS), -EINVAL);
	cr_assert_str_eq(text, "tw_limiter_set_rate: the limiter was created without a rate");
	close_all();
	open_with(rated(2, 10 * MS));
	expect_eq(tw_limiter_set_rate(NULL, 1, MS), -EINVAL);
	expect_eq(tw_limiter_set_rate(home.limiter, 0, MS), -EINVAL);
	cr_assert_str_eq(text,
			 "tw_limiter_set_rate: starts has a value that the header does not allow");
	expect_eq(tw_limiter_set_rate(home.limiter, (1u << 20) + 1, MS), -EINVAL);
	expect_eq(tw_limiter_set_rate(home.limiter, 1, 0), -EINVAL);
	cr_assert_str_eq(
	    text, "tw_limiter_set_rate: interval_ns has a value that the header does not allow");
	expect_eq(tw_limiter_set_rate(home.limiter, 1, TW_MAX_DELAY_NS + 1), -EINVAL);
	submit_all(loads, 4);
	expect_eq(home.starts, 2);
	limited_advance(&home, 10 * MS);
	expect_eq(home.starts, 4);
	close_all();
}

/* ------------------------------------------------------------------ priority */

static void submit_at(struct load *load, int32_t priority)
{
	struct tw_limiter_task task = load_task(load);
	task.priority = priority;
	load_submit_task(load, &task);
	limited_pump(&home);
}

Test(limiter_changes, job_in_line_moves_behind_the_others_of_its_new_priority)
{
	struct load loads[6] = {LOAD(0, .held = true)};
	open_started(1);
	load_submit(&loads[0]);
	for (int i = 1; i < 6; i++) {
		loads[i] = LOAD(i);
		submit_at(&loads[i], i == 5 ? 7 : 0);
	}
	expect_eq(tw_job_set_priority(home.limiter, loads[3].job, 7), 0);
	expect_eq(tw_job_set_priority(home.limiter, loads[1].job, -4), 0);
	/* as it was: it keeps its place */
	expect_eq(tw_job_set_priority(home.limiter, loads[2].job, 0), 0);
	complete(&loads[0], 0);
	expect_started_in_order(&home, 6, (int[]){0, 5, 3, 2, 4, 1});
	expect_eq(tw_job_set_priority(home.limiter, loads[3].job, 1), TW_GONE);
	close_all();
}

Test(limiter_changes, time_in_line_counts_through_a_change_of_priority)
{
	struct load holder = LOAD(0, .held = true), load = LOAD(1), timed = LOAD(2);
	open_started(1);
	load_submit(&holder);
	load_submit(&load);
	struct tw_limiter_task task = load_task(&timed);
	task.queue_timeout_ns = 30 * MS;
	load_submit_task(&timed, &task);
	limited_advance(&home, 20 * MS);
	expect_eq(tw_job_set_priority(home.limiter, load.job, 3), 0);
	expect_eq(tw_job_set_priority(home.limiter, timed.job, 2), 0);
	limited_advance(&home, 20 * MS);
	expect_settled(&timed, TW_JOB_STATUS_TIMED_OUT, -ETIMEDOUT); /* 30 ms after the submit */
	expect_eq(timed.done_ns, 30 * MS);
	complete(&holder, 0);
	expect_eq(load.result.queued_ns, 40 * MS);
	close_all();
}

Test(limiter_changes, running_or_retrying_job_uses_its_priority_in_its_next_stay)
{
	struct load runs = LOAD(0, .held = true), waits = LOAD(1, .answer = -EIO, .fails = 1),
		    other = LOAD(2), last = LOAD(3, .held = true);
	open_started(1);
	struct tw_limiter_task task = load_task(&waits);
	task.retry = (struct tw_retry){.count = 1, .delay_ns = 5 * MS};
	load_submit_task(&waits, &task);
	limited_pump(&home);
	expect_eq(tw_job_state(home.limiter, waits.job), TW_JOB_STATE_RETRYING);
	expect_eq(tw_job_set_priority(home.limiter, waits.job, 9), 0);
	load_submit(&runs);
	limited_pump(&home);
	expect_eq(tw_job_set_priority(home.limiter, runs.job, -9), 0);
	load_submit(&other);
	limited_advance(&home, 10 * MS);
	complete(&runs, 0);
	expect_started_in_order(&home, 4, (int[]){1, 0, 1, 2});
	load_submit(&last);
	limited_pump(&home);
	complete(&last, 0);
	close_all();
}

Test(limiter_changes, light_job_that_moves_before_a_heavy_one_starts)
{
	struct load holder = LOAD(0, .held = true), heavy = LOAD(1, .held = true), light = LOAD(2);
	open_started(2);
	load_submit(&holder);
	struct tw_limiter_task task = load_task(&heavy);
	task.permits = 2;
	load_submit_task(&heavy, &task);
	load_submit(&light);
	limited_pump(&home);
	expect_eq(light.starts, 0);
	expect_eq(tw_job_set_priority(home.limiter, light.job, 1), 0);
	limited_pump(&home);
	expect_eq(light.dones, 1);
	complete(&holder, 0);
	complete(&heavy, 0);
	close_all();
}

Test(limiter_changes, bad_priorities_are_refused)
{
	struct load holder = LOAD(0, .held = true), load = LOAD(1);
	open_started(1);
	tw_set_misuse_hook(keep_text);
	load_submit(&holder);
	load_submit(&load);
	limited_pump(&home);
	expect_eq(tw_job_set_priority(NULL, load.job, 1), -EINVAL);
	expect_eq(tw_job_set_priority(home.limiter, load.job, 32768), -EINVAL);
	cr_assert_str_eq(
	    text, "tw_job_set_priority: priority has a value that the header does not allow");
	expect_eq(tw_job_set_priority(home.limiter, load.job, -32769), -EINVAL);
	expect_eq(tw_job_set_priority(home.limiter, (tw_job){0}, 1), TW_GONE);
	faults_arm(0, true);
	expect_eq(tw_job_set_priority(home.limiter, load.job, 17), -ENOMEM);
	expect_eq(faults_disarm(), true);
	expect_eq(tw_job_state(home.limiter, load.job), TW_JOB_STATE_QUEUED);
	complete(&holder, 0);
	expect_eq(load.dones, 1);
	close_all();
}
