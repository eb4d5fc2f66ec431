/*
 * The clock decides what is late, and the driver keeps the times: whatever the executor does. On a
 * clock moved by hand.
 */
#include <errno.h>

#include "test/support/limiter_suite.h"

TestSuite(limiter_clock, .fini = close_left, .timeout = 60);

/* ---------------------------------------------------------- an executor that is stuck */

static struct queue_executor stuck;

/*
 * All callbacks of the service, but not the limiter's jobs, are for an executor that runs nothing.
 */
static void open_stuck(struct tw_limiter_config config)
{
	struct tw_service_config service = rig_config();
	queue_executor_open(&stuck);
	service.executor = &stuck.base;
	open_in(&service, config);
}

static void close_stuck(void)
{
	limited_close(&home);
	queue_executor_close(&stuck);
}

Test(limiter_clock, times_are_kept_while_the_executor_runs_nothing)
{
	struct load runs = LOAD(1, .held = true), waits = LOAD(2), fails = LOAD(3, .answer = -EIO);
	open_stuck(limited_config(2));
	struct tw_limiter_task task = load_task(&runs);
	task.attempt_timeout_ns = 5 * MS;
	load_submit_task(&runs, &task);
	task = load_task(&fails);
	task.retry = (struct tw_retry){.count = 1, .delay_ns = 20 * MS};
	task.timeout_ns = 8 * MS; /* no time for a retry */
	load_submit_task(&fails, &task);
	limited_pump(&home);
	expect_settled(&fails, TW_JOB_STATUS_FAILED, -EIO);
	expect_eq(tw_limiter_pause(home.limiter), 0);
	task = load_task(&waits);
	task.queue_timeout_ns = 3 * MS;
	load_submit_task(&waits, &task);
	rig_advance(&home.rig, 3 * MS);
	expect_eq(limited_stats(&home).timed_out, 1);
	expect_eq(tw_job_state(home.limiter, waits.job), TW_JOB_STATE_SETTLED);
	rig_advance(&home.rig, 2 * MS);
	expect_eq(limited_stats(&home).timed_out, 2);
	expect_eq(tw_job_state(home.limiter, runs.job), TW_JOB_STATE_SETTLED);
	expect_eq(runs.stops + runs.dones + waits.dones, 0); /* those are for the executor */
	limited_pump(&home);
	expect_eq(runs.stops, 1);
	expect_eq(runs.why, TW_JOB_STATUS_TIMED_OUT);
	expect_settled(&runs, TW_JOB_STATUS_TIMED_OUT, -ETIMEDOUT);
	expect_settled(&waits, TW_JOB_STATUS_TIMED_OUT, -ETIMEDOUT);
	expect_eq(waits.releases, 1);
	expect_eq(runs.releases, 0);
	expect_eq(tw_job_complete(home.limiter, runs.attempt, 0, NULL), TW_JOB_LATE);
	expect_eq(runs.releases, 1);
	expect_eq(queue_executor_waiting(&stuck), 0);
	close_stuck();
}

Test(limiter_clock, retry_delays_and_tokens_are_kept_while_the_services_executor_runs_nothing)
{
	struct load loads[2] = {LOAD(1, .answer = -EIO, .fails = 1), LOAD(2)};
	struct tw_limiter_config config = limited_config(2);
	config.rate_starts = 2;
	config.rate_interval_ns = 10 * MS;
	open_stuck(config);
	struct tw_limiter_task task = load_task(&loads[0]);
	task.retry = (struct tw_retry){.count = 1, .delay_ns = 5 * MS};
	load_submit_task(&loads[0], &task);
	load_submit(&loads[1]);
	limited_advance(&home, 9 * MS);
	expect_eq(loads[0].starts, 1);
	limited_advance(&home, MS);
	expect_eq(loads[0].starts, 2);
	expect_settled(&loads[0], TW_JOB_STATUS_SUCCEEDED, 0);
	expect_eq(queue_executor_waiting(&stuck), 0);
	close_stuck();
}

static int idles;

static void count_idle(void *arg, const struct tw_job_result *results, size_t n)
{
	idles++;
}

/* A job that has nothing to call, as the last one, and the listener. */
Test(limiter_clock, idle_of_a_timeout_is_told_on_the_executor)
{
	struct load runs = LOAD(1, .held = true);
	struct tw_limiter_config config = limited_config(1);
	open_with(config);
	expect_eq(tw_limiter_pause(home.limiter), 0);
	struct tw_limiter_task task = load_task(&runs);
	task.done = NULL, task.stop = NULL, task.release = NULL;
	task.queue_timeout_ns = 5 * MS;
	load_submit_task(&runs, &task);
	expect_eq(tw_limiter_on_idle(home.limiter, count_idle, NULL), 0);
	rig_advance(&home.rig, 5 * MS);
	expect_eq(limited_stats(&home).timed_out, 1);
	expect_eq(idles, 0);
	expect_eq(tw_limiter_wait_idle(home.limiter, 0), -ETIMEDOUT);
	limited_pump(&home);
	expect_eq(idles, 1);
	expect_eq(tw_limiter_wait_idle(home.limiter, 0), 0);
}

/* ---------------------------------------------------------------- late is timed out */

static uint64_t takes_ns;
static bool asks, was_cancelled[2];

static int succeed_after_a_while(void *arg, struct tw_job_run *run)
{
	struct load *load = arg;
	load->starts++;
	was_cancelled[0] = asks && tw_job_is_cancelled(run->limiter, run->job);
	limited_pass(&home, takes_ns);
	was_cancelled[1] = asks && tw_job_is_cancelled(run->limiter, run->job);
	takes_ns = 0;
	return 0;
}

static struct tw_limiter_task slow_task(struct load *load, uint64_t ns)
{
	struct tw_limiter_task task = load_task(load);
	task.fn = succeed_after_a_while;
	takes_ns = ns;
	return task;
}

Test(limiter_clock, attempt_that_ends_after_its_time_is_timed_out)
{
	for (int total = 0; total < 2; total++) {
		struct load load = LOAD(1);
		open_started(1);
		struct tw_limiter_task task = slow_task(&load, 400 * MS);
		*(total ? &task.timeout_ns : &task.attempt_timeout_ns) = 50 * MS;
		load_submit_task(&load, &task);
		limited_pump(&home);
		expect_settled(&load, TW_JOB_STATUS_TIMED_OUT, -ETIMEDOUT);
		expect_eq(load.result.run_ns, 400 * MS);
		expect_eq(load.stops, 0); /* it had ended */
		expect_eq(load.releases, 1);
		close_all();
	}
}

Test(limiter_clock, attempt_that_ends_in_time_succeeds)
{
	struct load load = LOAD(1);
	open_started(1);
	struct tw_limiter_task task = slow_task(&load, 49 * MS);
	task.attempt_timeout_ns = task.timeout_ns = 50 * MS;
	load_submit_task(&load, &task);
	limited_pump(&home);
	expect_settled(&load, TW_JOB_STATUS_SUCCEEDED, 0);
}

Test(limiter_clock, attempt_that_ends_after_its_time_is_tried_again)
{
	struct load load = LOAD(1);
	open_started(1);
	struct tw_limiter_task task = slow_task(&load, 400 * MS);
	task.attempt_timeout_ns = 50 * MS;
	task.retry = (struct tw_retry){.count = 1, .delay_ns = MS};
	load_submit_task(&load, &task);
	limited_pump(&home);
	expect_eq(tw_job_state(home.limiter, load.job), TW_JOB_STATE_RETRYING);
	limited_advance(&home, 2 * MS);
	expect_settled(&load, TW_JOB_STATUS_SUCCEEDED, 0);
	expect_eq(load.result.attempts, 2);
}

Test(limiter_clock, completed_after_its_time_is_timed_out_and_so_answered)
{
	struct load load = LOAD(1, .held = true);
	open_started(1);
	struct tw_limiter_task task = load_task(&load);
	task.attempt_timeout_ns = 50 * MS;
	load_submit_task(&load, &task);
	limited_pump(&home);
	limited_pass(&home, 60 * MS);
	expect_eq(tw_job_complete(home.limiter, load.attempt, 0, &load), TW_JOB_LATE);
	expect_settled(&load, TW_JOB_STATUS_TIMED_OUT, -ETIMEDOUT);
	expect_eq(tw_job_complete(home.limiter, load.attempt, 0, NULL), -EALREADY);
	expect_eq(load.stops, 0);
	expect_eq(load.releases, 1);
}

Test(limiter_clock, job_whose_time_in_line_has_passed_is_not_started)
{
	for (int total = 0; total < 2; total++) {
		struct load first = LOAD(1, .held = true), loads[40], last = LOAD(9);
		open_started(1);
		load_submit(&first);
		limited_pump(&home);
		for (int i = 0; i < 40; i++) {
			loads[i] = LOAD(2);
			struct tw_limiter_task task = load_task(&loads[i]);
			*(total ? &task.timeout_ns : &task.queue_timeout_ns) = 50 * MS;
			load_submit_task(&loads[i], &task);
		}
		load_submit(&last);
		limited_pass(&home, 60 * MS);
		complete(&first, 0);
		for (int i = 0; i < 40; i++) {
			expect_eq(loads[i].starts, 0);
			expect_settled(&loads[i], TW_JOB_STATUS_TIMED_OUT, -ETIMEDOUT);
			expect_eq(loads[i].result.queued_ns, 60 * MS);
		}
		expect_settled(&last, TW_JOB_STATUS_SUCCEEDED, 0);
		close_all();
	}
}

Test(limiter_clock, job_learns_from_the_clock_that_it_is_past_its_time)
{
	struct load load = LOAD(1);
	open_started(1);
	struct tw_limiter_task task = slow_task(&load, 60 * MS);
	task.attempt_timeout_ns = 50 * MS;
	asks = true;
	load_submit_task(&load, &task);
	limited_pump(&home);
	expect_eq(was_cancelled[0], false);
	expect_eq(was_cancelled[1], true);
}

/* A thread waits for room for the load behind the two others, until its time has passed. */
static void submit_to_full_line(struct load *first, struct load *second, struct load *load,
				struct submitter *submitter)
{
	struct tw_limiter_config config = limited_config(1);
	struct tw_limiter_task task = load_task(load);
	task.timeout_ns = 50 * MS;
	config.max_pending = 1;
	open_with(config);
	load_submit(first);
	limited_pump(&home);
	load_submit(second);
	submitter_begin(submitter, load, task);
	limited_pass(&home, 60 * MS);
}

Test(limiter_clock, job_whose_time_passes_while_submit_waits_for_room_is_timed_out)
{
	struct load first = LOAD(1, .held = true), second = LOAD(2, .held = true), load = LOAD(3);
	struct submitter submitter;
	submit_to_full_line(&first, &second, &load, &submitter);
	expect_eq(tw_job_complete(home.limiter, first.job, 0, NULL), 0);
	limited_pump(&home);
	expect_eq(submitter_end(&submitter), 0);
	expect_eq(tw_job_complete(home.limiter, second.job, 0, NULL), 0);
	limited_pump(&home);
	expect_eq(load.starts, 0);
	expect_settled(&load, TW_JOB_STATUS_TIMED_OUT, -ETIMEDOUT);
}

/* No permit comes back meanwhile. */
Test(limiter_clock, submit_does_not_wait_for_room_beyond_the_jobs_timeout)
{
	struct load first = LOAD(1, .held = true), second = LOAD(2, .held = true), load = LOAD(3);
	struct submitter submitter;
	submit_to_full_line(&first, &second, &load, &submitter);
	expect_eq(submitter_end(&submitter), 0);
	limited_advance(&home, MS);
	expect_settled(&load, TW_JOB_STATUS_TIMED_OUT, -ETIMEDOUT);
	expect_eq(load.starts, 0);
	expect_eq(limited_stats(&home).pending, 1);
	expect_eq(tw_job_complete(home.limiter, first.job, 0, NULL), 0);
	limited_pump(&home);
	expect_eq(tw_job_complete(home.limiter, second.job, 0, NULL), 0);
	limited_pump(&home);
}

/* -------------------------------------------------------------------------- slices */

static int take_10_ms(void *arg, struct tw_job_run *run)
{
	((struct load *)arg)->starts++;
	limited_pass(&home, 10 * MS);
	return 0;
}

static int take_2_ms(void *arg, struct tw_job_run *run)
{
	((struct load *)arg)->starts++;
	limited_pass(&home, 2 * MS);
	return 0;
}

static void expect_a_row_of(unsigned jobs, tw_job_fn *fn)
{
	struct load load = LOAD(1);
	open_started(1);
	struct tw_limiter_task task = load_task(&load);
	task.fn = fn, task.done = NULL, task.release = NULL, task.stop = NULL;
	for (int i = 0; i < 12; i++)
		expect_eq(tw_limiter_submit_task(home.limiter, &task, NULL), 0);
	expect_eq(queue_executor_waiting(&home.queue), 1);
	expect_eq(queue_executor_run_next(&home.queue), 1);
	expect_eq(load.starts, jobs);
	expect_eq(queue_executor_waiting(&home.queue), 1); /* behind what others have brought */
	limited_pump(&home);
	expect_eq(load.starts, 12);
	close_all();
}

Test(limiter_clock, runs_jobs_in_a_row_for_5_ms)
{
	expect_a_row_of(1, take_10_ms);
	expect_a_row_of(3, take_2_ms);
}
