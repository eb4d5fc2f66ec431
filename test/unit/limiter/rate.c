/*
 * The limiter's rate: how many starts an interval has, and when a start counts. On a clock moved by
 * hand.
 */
#include <errno.h>
#include <stdlib.h>

#include "test/support/limiter_suite.h"

TestSuite(limiter_rate, .fini = close_left);

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

Test(limiter_rate, at_most_so_many_starts_in_any_interval)
{
	open_with(rated(3, 10 * MS));
	for (int i = 0; i < 2; i++) {
		loads[i] = LOAD(i);
		load_submit(&loads[i]);
	}
	limited_advance(&home, 4 * MS);
	for (int i = 2; i < 8; i++) {
		loads[i] = LOAD(i);
		load_submit(&loads[i]);
	}
	limited_advance(&home, 5 * MS);
	loads[8] = LOAD(8); /* a look at the bucket, just before tokens come back */
	load_submit(&loads[8]);
	limited_advance(&home, 50 * MS);
	static const uint64_t starts_ms[] = {0, 0, 4, 10, 10, 14, 20, 20, 24};
	for (int i = 0; i < 9; i++) {
		expect_eq(loads[i].starts, 1);
		expect_eq(loads[i].started_ns[0], starts_ms[i] * MS);
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

/* Retries are starts like others. */
Test(limiter_rate, retries_take_tokens_too)
{
	open_with(rated(2, 10 * MS));
	loads[0] = LOAD(0, .answer = -EIO);
	struct tw_limiter_task task = load_task(&loads[0]);
	task.retry = (struct tw_retry){.count = 4, .delay_ns = MS};
	load_submit_task(&loads[0], &task);
	limited_advance(&home, 60 * MS);
	static const uint64_t starts_ms[] = {0, 1, 10, 11, 20};
	expect_eq(loads[0].starts, 5);
	for (int i = 0; i < 5; i++)
		expect_eq(loads[0].started_ns[i], starts_ms[i] * MS);
}

Test(limiter_rate, a_token_whose_job_was_cancelled_before_it_started_is_not_lost)
{
	open_with(rated(1, 10 * MS));
	for (int i = 0; i < 3; i++) {
		loads[i] = LOAD(i);
		load_submit(&loads[i]);
	}
	/* a runner is on its way */
	expect_eq(tw_job_cancel(home.limiter, loads[0].job), TW_CANCELLED);
	limited_pump(&home);
	expect_eq(loads[1].starts, 1);
	limited_advance(&home, 10 * MS);
	expect_eq(loads[2].started_ns[0], 10 * MS);
}
