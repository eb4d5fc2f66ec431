/* What changes while a limiter runs: rate and priority. By a manual clock. */
#include <errno.h>
#include <stdlib.h>

#include "test/support/faults.h"
#include "test/support/limiter_suite.h"
#include "test/support/random.h"

TestSuite(limiter_changes, .fini = close_left);

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

enum { STEPS = 8, JOBS = 12 };

/* At an instant: jobs that come, and the rate that is set (0: none); how many have started then. */
struct rate_step {
	uint64_t at_ms;
	int jobs;
	uint32_t starts;
	uint64_t interval_ms;
	unsigned wanted;
};

static const struct rate_row {
	const char *name;
	uint32_t starts;
	uint64_t interval_ms;
	struct rate_step steps[STEPS];
} rate_rows[] = {
    {"a higher rate starts jobs now; tokens come back when they would have",
     2,
     100,
     {{0, 8, 0, 0, 2}, {10, 0, 5, 100, 5}, {99, 0, 0, 0, 5}, {100, 0, 0, 0, 7}, {110, 0, 0, 0, 8}}},
    {"a shorter interval returns tokens earlier",
     2,
     1000,
     {{0, 4, 0, 0, 2}, {20, 0, 2, 50, 2}, {49, 0, 0, 0, 2}, {50, 0, 0, 0, 4}}},
    {"a lower rate counts the starts before it",
     4,
     40,
     {{0, 3, 0, 0, 3},
      {10, 5, 0, 0, 4},
      {10, 0, 2, 60, 4},
      {59, 0, 0, 0, 4},
      {60, 0, 0, 0, 5}, /* the last but one is an interval ago */
      {70, 0, 0, 0, 6},
      {130, 0, 0, 0, 8}}},
    {"a rate that was lower for a moment counts all starts before it",
     4,
     100,
     {{0, 12, 0, 0, 4},
      {10, 0, 1, 100, 4},
      {20, 0, 4, 100, 4},
      {99, 0, 0, 0, 4},
      {100, 0, 0, 0, 8},
      {200, 0, 0, 0, 12}}},
};

static void check_rate(const struct rate_row *row)
{
	struct load loads[JOBS];
	int came = 0;
	open_with(rated(row->starts, row->interval_ms * MS));
	for (const struct rate_step *step = row->steps; step < row->steps + STEPS && step->wanted;
	     step++) {
		limited_advance(&home, step->at_ms * MS - limited_now(&home));
		submit_all(&loads[came], step->jobs);
		came += step->jobs;
		if (step->starts)
			expect_eq(
			    tw_limiter_set_rate(home.limiter, step->starts, step->interval_ms * MS),
			    0);
		limited_pump(&home);
		cr_assert(home.starts == step->wanted, "%s: %u at %d ms", row->name, home.starts,
			  (int)step->at_ms);
	}
	close_all();
}

Test(limiter_changes, rates)
{
	for (size_t i = 0; i < sizeof rate_rows / sizeof *rate_rows; i++)
		check_rate(&rate_rows[i]);
}

static void lower_the_rate(void *arg, tw_job job, uint64_t id, uint32_t attempt)
{
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
}

Test(limiter_changes, without_memory_a_job_stays_where_it_is)
{
	struct load holder = LOAD(0, .held = true), load = LOAD(1);
	open_started(1);
	load_submit(&holder);
	load_submit(&load);
	limited_pump(&home);
	faults_arm(0, true);
	expect_eq(tw_job_set_priority(home.limiter, load.job, 17), -ENOMEM);
	expect_eq(faults_disarm(), true);
	expect_eq(tw_job_state(home.limiter, load.job), TW_JOB_STATE_QUEUED);
	complete(&holder, 0);
	expect_eq(load.dones, 1);
}
