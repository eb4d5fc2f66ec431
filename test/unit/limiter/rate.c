/*
 * The limiter's rate: how many starts an interval has, and when a start counts. On a clock moved by
 * hand.
 */
#include <errno.h>
#include <stdlib.h>

#include "test/support/limiter_script.h"
#include "test/support/limiter_suite.h"
#include "test/support/random.h"

TestSuite(limiter_rate, .fini = close_left);

static const struct script scripts[] = {
    /* tokens */
    {"at most three starts in any interval",
     {{"given limit=100 rate=3 interval=10; submit 0 1", "start 0, 0 ok, start 1, 1 ok"},
      {"advance 4; submit 2..7", "@4 start 2, 2 ok"},
      {"advance 5; submit 8", ""}, /* a look at the bucket, just before tokens come back */
      {"advance 50",
       "@10 start 3, 3 ok, start 4, 4 ok, @14 start 5, 5 ok, @20 start 6, 6 ok, start 7, 7 ok, "
       "@24 start 8, 8 ok"}}},
    {"retries take tokens too",
     {{"given limit=100 rate=2 interval=10; submit 0 error=EIO retries=4 delay=1", "start 0"},
      {"advance 60", "@1 start 0, @10 start 0, @11 start 0, @20 start 0, 0 failed EIO"}}},
    {"a token whose job was cancelled before it started is not lost",
     {{"given limit=100 rate=1 interval=10; submit 0..2; cancel 0",
       "0 cancelled, CANCELLED, start 1, 1 ok"}, /* a runner is out */
      {"advance 10", "@10 start 2, 2 ok"}}},
    {"tokens and retries come though the service's executor refuses",
     {{"given limit=3 rate=2 interval=10 refused; submit 0 2; submit 1 error=EIO fails=1 retries=1 "
       "delay=5",
       "start 0, 0 ok, start 2, 2 ok"},
      {"advance 30", "@10 start 1, @15 start 1, 1 ok"}}},
    /* what is waited for is not the token of the one behind */
    {"a token goes to an attempt that begins where another has ended, and none comes back unseen",
     {{"given limit=100 rate=2 interval=100; submit 0 bare stays=10 {submit 1 bare stays=10 "
       "{submit 2 3 bare}}",
       "start 0, @10 start 1"},
      {"advance 180", "@100 start 2, @110 start 3"}}},
    /* changes of the rate */
    {"a limiter without a rate gets one, and loses it",
     {{"given limit=64; submit 0..3 bare", "start 0, start 1, start 2, start 3"},
      {"rate 2 50; submit 4..7 bare", "start 4, start 5"},
      {"advance 49", ""},
      {"advance 1; submit 8 9 bare", "@50 start 6, start 7"},
      {"rate 0 0", "start 8, start 9"},
      {"submit 10 11 bare", "start 10, start 11"},
      {"rate 1 50; submit 12 13 bare; advance 50", "start 12, @100 start 13"}}},
    {"a rate that goes and comes between a token and its start counts it",
     {{"given limit=64 rate=1 interval=50 hooks; submit 0 bare in_started {rate 0 0; rate 1 50}; "
       "submit 1 bare",
       "started 0, start 0, settled 0"},
      {"advance 50", "@50 started 1, start 1, settled 1, idle"}}},
    {"a bucket with an endless interval is refilled by hand",
     {{"given limit=64 paused; rate 2; submit 0..9 bare; resume", "start 0, start 1"},
      {"advance 1000", ""},
      {"rate 3", "@1000 start 2, start 3, start 4"},
      {"advance 1000; rate 1", "@2000 start 5"},
      {"rate 2 10", "start 6"},
      {"advance 20", "@2010 start 7, start 8, @2020 start 9"}}},
    {"a higher rate starts jobs now; tokens come back when they would have",
     {{"given limit=64 rate=2 interval=100; submit 0..7 bare", "start 0, start 1"},
      {"advance 10; rate 5 100", "@10 start 2, start 3, start 4"},
      {"advance 89", ""},
      {"advance 20", "@100 start 5, start 6, @110 start 7"}}},
    {"a shorter interval returns tokens earlier",
     {{"given limit=64 rate=2 interval=1000; submit 0..3 bare", "start 0, start 1"},
      {"advance 20; rate 2 50; advance 29", ""},
      {"advance 1", "@50 start 2, start 3"}}},
    {"a lower rate counts the starts before it",
     {{"given limit=64 rate=4 interval=40; submit 0..2 bare", "start 0, start 1, start 2"},
      {"advance 10; submit 3..7 bare", "@10 start 3"},
      {"rate 2 60; advance 49", ""},
      {"advance 100", "@60 start 4, @70 start 5, @120 start 6, @130 start 7"}}},
    {"a rate that was lower for a moment counts all starts before it",
     {{"given limit=64 rate=4 interval=100; submit 0..11 bare",
       "start 0, start 1, start 2, start 3"},
      {"advance 10; rate 1 100; advance 10; rate 4 100; advance 79", ""},
      {"advance 101",
       "@100 start 4, start 5, start 6, start 7, @200 start 8, start 9, start 10, start 11"}}},
    {"a rate that sinks between a token and its start counts both",
     {{"given limit=64 rate=2 interval=100 hooks; submit 0 bare; submit 1 bare in_started {rate 1 "
       "100}; submit 2 3 bare",
       "started 0, start 0, settled 0, started 1, start 1, settled 1"},
      {"rate 2 100; advance 99", ""},
      {"advance 1", "@100 started 2, start 2, settled 2, started 3, start 3, settled 3, idle"}}},
};

Test(limiter_rate, scripts)
{
	PLAY(&limiter_stage, NULL, scripts);
}

enum { MANY = 1500 };

static struct load loads[MANY];
static uint64_t seed;

static void begin_random(void)
{
	const char *given = getenv("LIMITER_SEED");
	seed = given ? strtoull(given, NULL, 0) : tw_clock_now(tw_clock_monotonic());
	cr_log_info("LIMITER_SEED=%llu", (unsigned long long)seed);
}

static struct tw_limiter_config rated(uint32_t starts, uint64_t interval_ns)
{
	struct tw_limiter_config config = limited_config(100);
	config.rate_starts = starts;
	config.rate_interval_ns = interval_ns;
	return config;
}

static void submit_second(void *arg, tw_job job, uint64_t id, uint32_t attempt)
{
	if (id == 1)
		load_submit(&loads[1]);
}

static int stay_long(void *arg, struct tw_job_run *run)
{
	limited_advance(&home, 15 * MS);
	return 0;
}

/* When it came, the token was out, and nobody knew when it would be back. */
Test(limiter_rate, one_that_comes_between_the_line_and_the_function_waits_for_nobodys_end)
{
	struct tw_limiter_config config = rated(1, 10 * MS);
	limited_hook(&config, (struct limited_hooks){.started = submit_second});
	open_with(config);
	loads[0] = LOAD(0);
	loads[1] = LOAD(1);
	struct tw_limiter_task task = load_task(&loads[0]);
	task.fn = stay_long;
	load_submit_task(&loads[0], &task);
	limited_pump(&home);
	expect_eq(loads[1].started_ns[0], 10 * MS);
}

/* Starts of the latest rates: after each change at most `starts` in a span of the interval. */
Test(limiter_rate, random_rates_are_kept_from_each_change_on, .timeout = 60)
{
	uint32_t starts = 3, interval_ms = 10;
	int first = 0, last = 0, since_ms = 0; /* loads that started since the change */
	begin_random();
	open_with(rated(starts, interval_ms * MS));
	for (int i = 0; i < MANY; i++) {
		loads[i] = LOAD(i);
		load_submit(&loads[i]);
	}
	for (int ms = 0; ms < 900 && last < MANY - 10; ms++) {
		limited_pump(&home);
		while (last < MANY && loads[last].starts)
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
			while (last < MANY && loads[last].starts)
				last++;
			first = last;
			since_ms = ms;
		}
		limited_advance(&home, MS);
	}
	tw_limiter_close(home.limiter, TW_CLOSE_DROP, 0);
	limited_pump(&home);
}
