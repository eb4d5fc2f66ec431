/*
 * What follows the end of an attempt, in which order; the times in the statistics. On a clock moved
 * by hand.
 */
#include <errno.h>

#include "test/support/limiter_suite.h"

TestSuite(limiter_ends, .fini = close_left, .timeout = 60);

/* --------------------------------------------------------------------- order */

/* An executor that looks at the limiter when it is given the next start, and passes it on. */
static tw_executor watching;
static struct tw_limiter_stats at_start, at_idle;
static unsigned starts_seen, idles_seen;

static int look_and_pass(tw_executor *self, tw_batch *batch, size_t n)
{
	at_start = limited_stats(&home);
	starts_seen++;
	expect_eq(idles_seen, 0);
	return home.queue.base.ops->submit(&home.queue.base, batch, n);
}

static const struct tw_executor_ops watching_ops = {.size = sizeof(watching_ops),
						    .submit = look_and_pass};

static void look_when_idle(void *arg)
{
	at_idle = limited_stats(&home);
	idles_seen++;
}

Test(limiter_ends,
     leaves_the_running_gives_its_permit_back_is_counted_then_the_next_starts_then_idle)
{
	struct load loads[2] = {LOAD(0, .held = true), LOAD(1, .held = true)};
	struct tw_limiter_config config = limited_config(1);
	watching.ops = &watching_ops;
	config.executor = &watching;
	limited_hook(&config, (struct limited_hooks){.idle = look_when_idle});
	open_with(config);
	load_submit(&loads[0]);
	limited_pump(&home);
	load_submit(&loads[1]);
	expect_eq(starts_seen, 1);
	expect_eq(tw_job_complete(home.limiter, loads[0].attempt, -EIO, NULL), 0);
	expect_eq(starts_seen, 2);
	expect_eq(at_start.running, 0);
	expect_eq(at_start.failed, 1);
	expect_eq(at_start.run.count, 1);
	expect_eq(at_start.pending, 1);
	limited_pump(&home);
	complete(&loads[1], 0);
	expect_eq(idles_seen, 1);
	expect_eq(at_idle.running, 0);
	expect_eq(at_idle.succeeded, 1);
	expect_eq(at_idle.added, 2);
}

/* --------------------------------------------------------------------- times */

/* Of a bucket's width: 1/16. */
static void expect_about(uint64_t is_ns, uint64_t should_ns)
{
	expect_ge(is_ns, should_ns - should_ns / 8);
	expect_le(is_ns, should_ns + should_ns / 8);
}

Test(limiter_ends, mean_and_percentiles_of_queue_and_run_time)
{
	static struct load loads[100];
	open_started(1);
	for (int i = 0; i < 100; i++) { /* run 1 .. 100 ms, one after the other */
		loads[i] = LOAD(i, .takes_ns = (uint64_t)(i + 1) * MS);
		load_submit(&loads[i]);
	}
	limited_advance(&home, 5100 * MS);
	struct tw_limiter_stats stats = limited_stats(&home);
	expect_eq(stats.run.count, 100);
	expect_eq(stats.run_mean_ns, 50500 * MS / 1000);
	expect_about(stats.run.p50_ns, 50 * MS);
	expect_about(stats.run.p99_ns, 99 * MS);
	expect_eq(stats.run.max_ns, 100 * MS);
	expect_eq(stats.queue.count, 100);
	/* of i * (i + 1) / 2 ms, i = 0 .. 99 */
	expect_eq(stats.queue_mean_ns, 1666500 * MS / 1000);
	expect_about(stats.queue.p50_ns, 1225 * MS);
	expect_about(stats.queue.p99_ns, 4851 * MS);
	expect_eq(stats.queue.max_ns, 4950 * MS);
}
