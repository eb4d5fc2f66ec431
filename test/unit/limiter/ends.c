/*
 * What follows the end of an attempt, in which order; the times in its result; how long calls wait.
 * On a clock moved by hand.
 */
#include <errno.h>
#include <pthread.h>

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

static unsigned idles;

static void count_idle(void *arg, const struct tw_job_result *results, size_t n)
{
	idles++;
}

/* ------------------------------------------------------------------- waiting */

struct stopper {
	uint64_t timeout_ns;
	int answer;
	unsigned idles; /* calls when it returned */
};

static void *stop(void *arg)
{
	struct stopper *self = arg;
	self->answer = tw_limiter_close(home.limiter, TW_CLOSE_DROP, self->timeout_ns);
	self->idles = idles;
	return NULL;
}

Test(limiter_ends, stop_waits_for_the_running_and_for_the_idle_listeners)
{
	struct load loads[2] = {LOAD(0, .held = true), LOAD(1)};
	struct stopper stopper = {.timeout_ns = TW_FOREVER};
	pthread_t thread;
	open_started(1);
	load_submit(&loads[0]);
	limited_pump(&home);
	load_submit(&loads[1]);
	expect_eq(tw_limiter_on_idle(home.limiter, count_idle, NULL), 0);
	expect_eq(pthread_create(&thread, NULL, stop, &stopper), 0);
	limited_await_end_waiter(&home);
	expect_settled(&loads[1], TW_JOB_STATUS_DROPPED, -ESHUTDOWN);
	expect_eq(loads[0].dones, 0);
	complete(&loads[0], 0);
	expect_eq(pthread_join(thread, NULL), 0);
	expect_eq(stopper.answer, 0);
	expect_eq(stopper.idles, 1);
	expect_settled(&loads[0], TW_JOB_STATUS_SUCCEEDED, 0);
}

Test(limiter_ends, stop_waits_no_longer_than_asked)
{
	struct load load = LOAD(0, .held = true);
	open_started(1);
	load_submit(&load);
	limited_pump(&home);
	uint64_t begin_ns = tw_clock_now(tw_clock_monotonic());
	expect_eq(tw_limiter_close(home.limiter, TW_CLOSE_DROP, 2 * MS), -ETIMEDOUT);
	expect_ge(tw_clock_now(tw_clock_monotonic()) - begin_ns, 2 * MS);
	complete(&load, 0);
	expect_eq(tw_limiter_close(home.limiter, TW_CLOSE_DROP, 0), 0);
}

/* ------------------------------------------------ waits that only the caller could end */

static tw_job other_job;
static int answers[2];

static void wait_for_other(void *arg, const struct tw_job_result *result)
{
	if (arg)
		return; /* the other one's */
	answers[0] = tw_job_wait(home.limiter, other_job, 0, NULL);
	answers[1] = tw_job_wait(home.limiter, other_job, TW_FOREVER, NULL);
}

/* One thread ends both jobs: it calls `done` of the other one afterwards. */
Test(limiter_ends, done_function_does_not_wait_for_one_that_its_thread_calls_next)
{
	struct tw_limiter_config config = limited_config(1);
	struct tw_limiter_task task = {
	    .size = sizeof task, .fn = job_succeeds, .done = wait_for_other};
	limited_open(&home, &config);
	expect_eq(tw_limiter_submit_task(home.limiter, &task, NULL), 0);
	task.arg = &other_job;
	expect_eq(tw_limiter_submit_task(home.limiter, &task, &other_job), 0);
	expect_eq(tw_limiter_close(home.limiter, TW_CLOSE_DROP, 0), 0);
	expect_eq(answers[0], -ETIMEDOUT);
	expect_eq(answers[1], -EDEADLK);
}
