/* What changes while a limiter runs: rate and priority. By a manual clock. */
#include <errno.h>
#include <stdlib.h>

#include "test/support/limiter_script.h"
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

static const struct script priorities[] = {
    {"a job in line moves behind the others of its new priority, unless it has it already",
     "",
     {{"submit 0 held", "start 0"},
      {"submit 1..4; submit 5 priority=7", ""},
      {"priority 3 7; priority 1 -4; priority 2 0", ""},
      {"end 0", "0 ok, start 5, 5 ok, start 3, 3 ok, start 2, 2 ok, start 4, 4 ok, start 1, 1 ok"},
      {"priority 3 1", "GONE"}}},
    {"the time in line counts through a change",
     "",
     {{"submit 0 held; submit 1; submit 2 queue=30", "start 0"},
      {"advance 20; priority 1 3; priority 2 2; advance 20", "@30 2 timed out"},
      {"end 0", "@40 0 ok, start 1, 1 ok"},
      {"result 1 queued", "queued=40"}}},
    {"a running or retrying job uses it in its next stay",
     "",
     {{"submit 1 error=EIO fails=1 retries=1 delay=5", "start 1"},
      {"state 1; priority 1 9; submit 0 held", "RETRYING, start 0"},
      {"priority 0 -9; submit 2; advance 10", ""},
      {"end 0", "@10 0 ok, start 1, 1 ok, start 2, 2 ok"},
      {"submit 3 held", "start 3"},
      {"end 3", "3 ok"}}},
    {"a light job that moves before a heavy one starts",
     "limit=2",
     {{"submit 0 held; submit 1 held permits=2; submit 2", "start 0"},
      {"priority 2 1", "start 2, 2 ok"},
      {"end 0", "0 ok, start 1"},
      {"end 1", "1 ok"}}},
};

Test(limiter_changes, priorities)
{
	PLAY(&limiter_stage, NULL, priorities);
}
