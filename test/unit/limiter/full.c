/*
 * A limiter whose service has no timer left to give: all times are kept all the same, a tick later
 * at most. On a clock moved by hand.
 */
#include <errno.h>
#include <stdlib.h>

#include "test/support/limiter_script.h"

static const struct script without_timers[] = {
    {"a job keeps its times",
     "full",
     {{"submit 0 held; submit 1 queue=10; stats rejected", "rejected=0, start 0"},
      {"advance 12", "@10 1 timed out"},
      {"end 0", "@12 0 ok"}}},
    {"timers serve again when they can be had",
     "limit=20 full",
     {{"submit 0 held attempt=10; submit 1 held attempt=17; submit 2 held attempt=24",
       "start 0, start 1, start 2"},
      {"advance 5; empty; advance 2", ""},
      {"advance 30",
       "@10 stop 0 timed out, 0 timed out, @17 stop 1 timed out, 1 timed out, @24 stop 2 timed "
       "out, 2 timed out"},
      {"end 0; end 1; end 2", "@37 release 0, LATE, release 1, LATE, release 2, LATE"}}},
    {"cancelled and dropped ones are forgotten",
     "full",
     {{"submit 0..3 error=EIO retries=9 delay=1000", "start 0, start 1, start 2, start 3"},
      {"cancel 2", "2 cancelled, CANCELLED"},
      {"close drop", "0 dropped, 1 dropped, 3 dropped"},
      {"advance 2000", ""}}},
    {"one that leaves the line for an attempt without end is looked for no more",
     "full",
     {{"submit 0 held; submit 1 held queue=10", "start 0"},
      {"end 0", "0 ok, start 1"},
      {"advance 20; end 1", "@20 1 ok"}}},
    {"one that is completed is looked for no more",
     "full",
     {{"submit 0 held attempt=10 {end 0; -; drive 20}", "start 0, -, @20 0 ok"}}},
    {"the same with timers",
     "",
     {{"submit 0 held attempt=10 {end 0; -; drive 20}", "start 0, -, @20 0 ok"}}},
    {"tokens come back",
     "full rate=1 interval=10",
     {{"submit 0 1", "start 0, 0 ok"},
      {"advance 8", ""},
      {"advance 4; submit 2 total=1", "@10 start 1, 1 ok"},
      {"advance 3", "@13 2 timed out"}}},
    {"callbacks of timed-out jobs are for the executor",
     "limit=2 full",
     {{"submit 0 held attempt=5; submit 1 held bare attempt=5", "start 0, start 1"},
      {"drive 7; stats timed_out; -", "@7 timed_out=2, -, stop 0 timed out, 0 timed out"},
      {"end 0; end 1", "release 0, LATE, LATE"}}},
};

Test(limiter_full, without_timers)
{
	PLAY(&limiter_stage, NULL, without_timers);
}

/* --------------------------------------------------------------- in general */

enum { LOADS = 60 };

static struct load randoms[LOADS];

static void play_random(uint64_t seed, bool full, struct tw_job_result *results, uint64_t *done_ns)
{
	/* nobody waits for another: what comes a tick late moves nobody else */
	open_stage(&limiter_stage, full ? "limit=60 full" : "limit=60");
	for (int i = 0; i < LOADS; i++) {
		randoms[i] = (struct load){.home = &script_home,
					   .number = i,
					   .answer = -EIO,
					   .fails = (unsigned)random_below(&seed, 4),
					   .held = random_percent(&seed, 40)};
		struct tw_limiter_task task = load_task(&randoms[i]);
		task.attempt_timeout_ns = (5 + random_below(&seed, 20)) * MS;
		task.retry = (struct tw_retry){.count = (uint32_t)random_below(&seed, 4),
					       .delay_ns = (3 + 4 * random_below(&seed, 5)) * MS};
		load_submit_task(&randoms[i], &task);
	}
	for (int ms = 0; ms < 200; ms++) {
		limited_advance(&script_home, MS);
		for (int i = 0; i < LOADS; i++) /* they obey, an instant later */
			if (randoms[i].held && randoms[i].stops == randoms[i].starts)
				tw_job_complete(script_home.limiter, randoms[i].attempt, -EINTR,
						NULL);
	}
	for (int i = 0; i < LOADS; i++) {
		expect_eq(randoms[i].dones, 1);
		results[i] = randoms[i].result;
		done_ns[i] = randoms[i].done_ns;
	}
	close_stage();
}

Test(limiter_full, all_ends_as_with_timers, .timeout = 120)
{
	static struct tw_job_result results[2][LOADS];
	static uint64_t done_ns[2][LOADS];
	const char *given = getenv("LIMITER_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 0) : tw_clock_now(tw_clock_monotonic());
	cr_log_info("LIMITER_SEED=%llu", (unsigned long long)seed);
	for (int round = 0; round < 10; round++, seed++) {
		play_random(seed, false, results[0], done_ns[0]);
		play_random(seed, true, results[1], done_ns[1]);
		for (int i = 0; i < LOADS; i++) {
			expect_eq(results[1][i].status, results[0][i].status);
			expect_eq(results[1][i].error, results[0][i].error);
			expect_eq(results[1][i].attempts, results[0][i].attempts);
			expect_ge(done_ns[1][i], done_ns[0][i]);
			/* a tick for each time kept */
			expect_le(done_ns[1][i], done_ns[0][i] + 8 * MS);
		}
	}
}
