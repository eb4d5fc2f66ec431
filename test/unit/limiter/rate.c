/*
 * The limiter's rate: how many starts an interval has, and when a start counts. On a clock moved by
 * hand.
 */
#include <errno.h>
#include <stdlib.h>

#include "test/support/limiter_script.h"
#include "test/support/limiter_suite.h"

TestSuite(limiter_rate, .fini = close_left);

static const struct script tokens[] = {
    {"at most three starts in any interval",
     "limit=100 rate=3 interval=10",
     {{"submit 0 1", "start 0, 0 ok, start 1, 1 ok"},
      {"advance 4; submit 2..7", "@4 start 2, 2 ok"},
      {"advance 5; submit 8", ""}, /* a look at the bucket, just before tokens come back */
      {"advance 50",
       "@10 start 3, 3 ok, start 4, 4 ok, @14 start 5, 5 ok, @20 start 6, 6 ok, start 7, 7 ok, "
       "@24 start 8, 8 ok"}}},
    {"retries take tokens too",
     "limit=100 rate=2 interval=10",
     {{"submit 0 error=EIO retries=4 delay=1", "start 0"},
      {"advance 60", "@1 start 0, @10 start 0, @11 start 0, @20 start 0, 0 failed EIO"}}},
    {"a token whose job was cancelled before it started is not lost",
     "limit=100 rate=1 interval=10",
     {{"submit 0..2; cancel 0", "0 cancelled, CANCELLED, start 1, 1 ok"}, /* a runner is out */
      {"advance 10", "@10 start 2, 2 ok"}}},
    {"tokens and retries come though the service's executor refuses",
     "limit=3 rate=2 interval=10 refused",
     {{"submit 0 2; submit 1 error=EIO fails=1 retries=1 delay=5", "start 0, 0 ok, start 2, 2 ok"},
      {"advance 30", "@10 start 1, @15 start 1, 1 ok"}}},
};

Test(limiter_rate, tokens)
{
	PLAY(&limiter_stage, NULL, tokens);
}

enum { LOADS = 60 };

static struct load loads[LOADS];

static struct tw_limiter_config rated(uint32_t starts, uint64_t interval_ns)
{
	struct tw_limiter_config config = limited_config(100);
	config.rate_starts = starts;
	config.rate_interval_ns = interval_ns;
	return config;
}

/* Time passes while a callback runs; nothing else happens meanwhile. */
static void spend(uint64_t ns)
{
	tw_clock_manual_set(home.rig.clock, rig_now(&home.rig) + ns);
}

/*
 * All loads have started once, in the order of their numbers; so any span is between two of them.
 */
static void expect_rate_held(int n, uint32_t starts, uint64_t interval_ns)
{
	for (int i = 0; i < n; i++) {
		expect_eq(loads[i].starts, 1);
		if (i >= (int)starts)
			expect_ge(loads[i].started_ns[0] - loads[i - (int)starts].started_ns[0],
				  interval_ns);
	}
}

/* A start counts from when its function is called, not from when it left the line. */
static uint64_t seed;

static void random_started(void *arg, tw_job job, uint64_t id, uint32_t attempt)
{
	spend(random_below(&seed, 4) * MS / 2);
}

static void try_random(void)
{
	uint32_t starts = 1 + (uint32_t)random_below(&seed, 5);
	uint64_t interval_ns = (1 + random_below(&seed, 8)) * MS;
	struct tw_limiter_config config = rated(starts, interval_ns);
	config.max_concurrency = 1 + (uint32_t)random_below(&seed, 8);
	limited_hook(&config, (struct limited_hooks){.started = random_started});
	open_with(config);
	for (int i = 0; i < LOADS; i++) {
		loads[i] = LOAD(i, .takes_ns = random_percent(&seed, 30) ? MS : 0);
		load_submit(&loads[i]);
		if (random_percent(&seed, 30))
			limited_advance(&home, random_below(&seed, 2 * interval_ns / MS) * MS);
	}
	limited_advance(&home, 2 * LOADS * interval_ns);
	expect_rate_held(LOADS, starts, interval_ns);
	close_all();
}

Test(limiter_rate, no_interval_holds_more_starts_whatever_delays_them, .timeout = 120)
{
	const char *given = getenv("LIMITER_SEED");
	seed = given ? strtoull(given, NULL, 0) : tw_clock_now(tw_clock_monotonic());
	cr_log_info("LIMITER_SEED=%llu", (unsigned long long)seed);
	for (int round = 0; round < 60; round++)
		try_random();
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

/* The first submits one, the second two, each after a while; nobody else runs meanwhile. */
static int submit_more(void *arg, struct tw_job_run *run)
{
	struct load *load = arg;
	spend(10 * MS);
	load->started_ns[0] = limited_now(&home);
	struct tw_limiter_task task = load_task(&loads[1]);
	task.fn = submit_more;
	if (run->id == 1) {
		load_submit_task(&loads[1], &task);
	} else {
		load_submit(&loads[2]);
		load_submit(&loads[3]);
	}
	return 0;
}

/*
 * A token goes to an attempt that begins where another has ended, while a runner sent for it is on
 * its way: what is waited for then is not the token of the one behind.
 */
Test(limiter_rate, no_token_comes_back_unseen)
{
	open_with(rated(2, 100 * MS));
	for (int i = 0; i < 4; i++)
		loads[i] = LOAD(i);
	struct tw_limiter_task task = load_task(&loads[0]);
	task.fn = submit_more;
	load_submit_task(&loads[0], &task); /* takes a token at 0, the second at 10 */
	limited_advance(&home, 200 * MS);
	expect_eq(loads[2].started_ns[0], 100 * MS);
	expect_eq(loads[3].started_ns[0], 110 * MS);
}
