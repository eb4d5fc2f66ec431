/*
 * A limiter whose service has no timer left to give: all times are kept all the same. On a clock
 * moved by hand.
 */
#include <errno.h>
#include <stdlib.h>

#include "executor/limiter/internal.h"
#include "test/support/limiter_suite.h"

enum { ROOM = 300 };

static tw_timer fillers[ROOM];
static int filled;

static void nothing(void *arg)
{
}

static void fill_service(void)
{
	while (filled < ROOM &&
	       tw_schedule(home.rig.service, HOUR, nothing, NULL, &fillers[filled]) == 0)
		filled++;
	expect_le(filled, ROOM - 1);
}

static void empty_service(void)
{
	while (filled > 0)
		expect_eq(tw_cancel(home.rig.service, fillers[--filled]), TW_CANCELLED);
}

static void open_small(struct tw_limiter_config config)
{
	struct tw_service_config small = rig_config();
	small.max_timers = 1; /* rounded up to what a service has at least */
	open_in(&small, config);
}

static void close_small(void)
{
	empty_service();
	close_all();
}

/* The service has none to give, and the driver looks in each tick. */
static void expect_no_timer(void)
{
	expect_eq(home.limiter->times.armed_ns, 0);
}

/* It may be past its time. */
static void end_attempt(struct load *load)
{
	expect_ge(tw_job_complete(home.limiter, load->attempt, 0, NULL), 0);
	limited_pump(&home);
}

/* A tick later at most. */
static void expect_at(uint64_t is_ns, uint64_t should_ns)
{
	expect_ge(is_ns, should_ns);
	expect_le(is_ns, should_ns + MS);
}

Test(limiter_full, a_job_keeps_its_times)
{
	struct load first = LOAD(1, .held = true), load = LOAD(2);
	open_small(limited_config(1));
	fill_service();
	load_submit(&first);
	limited_pump(&home);
	struct tw_limiter_task task = load_task(&load);
	task.queue_timeout_ns = 10 * MS;
	load_submit_task(&load, &task);
	expect_no_timer();
	expect_eq(limited_stats(&home).rejected, 0);
	limited_advance(&home, 12 * MS);
	expect_settled(&load, TW_JOB_STATUS_TIMED_OUT, -ETIMEDOUT);
	expect_at(load.done_ns, 10 * MS);
	end_attempt(&first);
	expect_eq(home.limiter->times.timed, 0);
	close_small();
}

Test(limiter_full, timers_are_used_again_when_they_can_be_had)
{
	struct load loads[20];
	open_small(limited_config(20));
	for (int i = 0; i < 20; i++) {
		loads[i] = LOAD(i, .held = true);
		struct tw_limiter_task task = load_task(&loads[i]);
		task.attempt_timeout_ns = (uint64_t)(10 + (i * 7) % 20) * MS;
		load_submit_task(&loads[i], &task);
	}
	fill_service();
	limited_advance(&home, 5 * MS);
	expect_eq(home.limiter->times.heap.count, 20);
	expect_no_timer();
	empty_service();
	limited_advance(&home, 2 * MS);
	expect_eq(home.limiter->times.heap.count, 20);
	expect_ge(home.limiter->times.armed_ns, RIG_START_NS + 10 * MS);
	expect_eq(stats_of(home.rig.service).pending, 1); /* one timer for all */
	limited_advance(&home, 30 * MS);
	for (int i = 0; i < 20; i++) {
		expect_settled(&loads[i], TW_JOB_STATUS_TIMED_OUT, -ETIMEDOUT);
		expect_eq(loads[i].done_ns, (uint64_t)(10 + (i * 7) % 20) * MS);
		end_attempt(&loads[i]);
	}
	close_small();
}

Test(limiter_full, cancelled_and_stopped_ones_are_looked_for_no_more)
{
	struct load loads[4];
	open_small(limited_config(1));
	for (int i = 0; i < 4; i++) {
		loads[i] = LOAD(i, .answer = -EIO);
		struct tw_limiter_task task = load_task(&loads[i]);
		task.retry = (struct tw_retry){.count = 9, .delay_ns = SECOND};
		load_submit_task(&loads[i], &task);
	}
	fill_service();
	limited_pump(&home);
	expect_eq(home.limiter->times.heap.count, 4);
	expect_eq(tw_job_cancel(home.limiter, loads[2].job), TW_CANCELLED);
	expect_eq(home.limiter->times.heap.count, 3);
	expect_eq(tw_limiter_close(home.limiter, TW_CLOSE_DROP, 0), 0);
	expect_eq(home.limiter->times.heap.count, 0);
	expect_settled(&loads[0], TW_JOB_STATUS_DROPPED, -ESHUTDOWN);
	expect_no_timer();
	close_small(); /* which takes it back */
}

/* It waited in line with a time to keep and no timer for it; then it runs, with none to keep. */
Test(limiter_full, one_that_leaves_the_line_for_an_attempt_without_end_is_looked_for_no_more)
{
	struct load first = LOAD(1, .held = true), load = LOAD(2, .held = true);
	open_small(limited_config(1));
	fill_service();
	load_submit(&first);
	limited_pump(&home);
	struct tw_limiter_task task = load_task(&load);
	task.queue_timeout_ns = 10 * MS;
	load_submit_task(&load, &task);
	expect_eq(home.limiter->times.heap.count, 1);
	end_attempt(&first);
	expect_eq(load.starts, 1);
	expect_eq(home.limiter->times.heap.count, 0);
	limited_advance(&home, 20 * MS);
	expect_eq(load.dones, 0);
	end_attempt(&load);
	expect_settled(&load, TW_JOB_STATUS_SUCCEEDED, 0);
	close_small();
}

/* The attempt of an asynchronous job is completed, and its function stays. */
static int complete_and_tick(void *arg, struct tw_job_run *run)
{
	expect_eq(home.limiter->times.heap.count, 1);
	expect_eq(tw_job_complete(run->limiter, run->job, 0, arg), 0);
	rig_advance(&home.rig, 20 * MS);
	return TW_JOB_PENDING;
}

Test(limiter_full, one_that_is_completed_is_looked_for_no_more_with_timers_and_without)
{
	for (int full = 0; full < 2; full++) {
		struct load load = LOAD(1, .held = true);
		open_small(limited_config(1));
		struct tw_limiter_task task = load_task(&load);
		task.fn = complete_and_tick;
		task.attempt_timeout_ns = 10 * MS;
		load_submit_task(&load, &task);
		if (full)
			fill_service();
		limited_pump(&home);
		expect_settled(&load, TW_JOB_STATUS_SUCCEEDED, 0);
		cr_assert_eq(load.result.value, &load);
		expect_eq(load.stops, 0);
		close_small();
	}
}

Test(limiter_full, tokens_come_back)
{
	struct load loads[2] = {LOAD(1), LOAD(2)};
	struct tw_limiter_config config = limited_config(1);
	config.rate_starts = 1;
	config.rate_interval_ns = 10 * MS;
	open_small(config);
	fill_service();
	for (int i = 0; i < 2; i++)
		load_submit(&loads[i]);
	limited_advance(&home, 8 * MS);
	expect_eq(loads[1].starts, 0);
	limited_advance(&home, 4 * MS);
	expect_settled(&loads[1], TW_JOB_STATUS_SUCCEEDED, 0);
	struct tw_limiter_task task = load_task(&loads[0]);
	task.timeout_ns = MS;
	load_submit_task(&loads[0], &task);
	limited_advance(&home, 3 * MS);
	expect_eq(loads[0].starts, 1);
	expect_eq(loads[0].dones, 2);
	expect_eq(loads[0].result.status, TW_JOB_STATUS_TIMED_OUT);
	close_small();
}

/* The driver calls no user code when it times a job out. */
Test(limiter_full, callbacks_of_timed_out_jobs_are_for_the_executor)
{
	struct load loads[2] = {LOAD(1, .held = true), LOAD(2, .held = true)};
	open_small(limited_config(2));
	fill_service();
	for (int i = 0; i < 2; i++) {
		struct tw_limiter_task task = load_task(&loads[i]);
		task.attempt_timeout_ns = 5 * MS;
		if (i == 1)
			task.done = NULL, task.stop = NULL, task.release = NULL;
		load_submit_task(&loads[i], &task);
	}
	limited_pump(&home);
	rig_advance(&home.rig, 7 * MS);
	expect_eq(limited_stats(&home).timed_out, 2);
	expect_eq(loads[0].stops + loads[0].dones, 0);
	limited_pump(&home);
	expect_eq(loads[0].stops, 1);
	expect_settled(&loads[0], TW_JOB_STATUS_TIMED_OUT, -ETIMEDOUT);
	for (int i = 0; i < 2; i++)
		end_attempt(&loads[i]);
	close_small();
}

/* --------------------------------------------------------------- in general */

enum { LOADS = 60 };

static struct load randoms[LOADS];

static void play(uint64_t seed, bool full, struct tw_job_result *results, uint64_t *done_ns)
{
	/* nobody waits for another: what comes a tick late moves nobody else */
	open_small(limited_config(LOADS));
	for (int i = 0; i < LOADS; i++) {
		randoms[i] = LOAD(i, .answer = -EIO, .fails = (unsigned)random_below(&seed, 4));
		randoms[i].held = random_percent(&seed, 40);
		struct tw_limiter_task task = load_task(&randoms[i]);
		task.attempt_timeout_ns = (5 + random_below(&seed, 20)) * MS;
		task.retry = (struct tw_retry){.count = (uint32_t)random_below(&seed, 4),
					       .delay_ns = (3 + 4 * random_below(&seed, 5)) * MS};
		load_submit_task(&randoms[i], &task);
	}
	if (full) {
		fill_service();
		limited_advance(&home, MS);
		expect_no_timer();
	}
	for (int ms = full; ms < 200; ms++) {
		limited_advance(&home, MS);
		for (int i = 0; i < LOADS; i++) /* they obey, an instant later */
			if (randoms[i].held && randoms[i].stops == randoms[i].starts)
				tw_job_complete(home.limiter, randoms[i].attempt, -EINTR, NULL);
	}
	for (int i = 0; i < LOADS; i++) {
		expect_eq(randoms[i].dones, 1);
		results[i] = randoms[i].result;
		done_ns[i] = randoms[i].done_ns;
	}
	close_small();
}

Test(limiter_full, all_ends_as_with_timers, .timeout = 120)
{
	static struct tw_job_result results[2][LOADS];
	static uint64_t done_ns[2][LOADS];
	const char *given = getenv("LIMITER_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 0) : tw_clock_now(tw_clock_monotonic());
	cr_log_info("LIMITER_SEED=%llu", (unsigned long long)seed);
	for (int round = 0; round < 10; round++, seed++) {
		play(seed, false, results[0], done_ns[0]);
		play(seed, true, results[1], done_ns[1]);
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
