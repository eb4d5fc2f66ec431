/*
 * User code that takes long delays no settle: a job whose total timeout passes meanwhile has
 * settled, and threads that wait for it are answered. On a clock moved by hand.
 */
#include <errno.h>

#include "test/support/limiter_suite.h"

TestSuite(limiter_slow_user, .fini = close_left, .timeout = 60);

enum { TOTAL = 10 };

static struct load load;
static unsigned looks, retried;

/* Its time passes here. The driver gets to run, and no thread of the executor does. */
static void let_its_time_pass(void)
{
	struct tw_job_result result = {0};
	looks++;
	expect_eq(limited_stats(&home).timed_out, 0);
	rig_advance(&home.rig, (TOTAL + 5) * MS);
	expect_eq(tw_job_state(home.limiter, load.job), TW_JOB_STATE_SETTLED);
	expect_eq(tw_job_wait(home.limiter, load.job, 0, &result), 0);
	expect_eq(result.status, TW_JOB_STATUS_TIMED_OUT);
	expect_eq(result.error, -ETIMEDOUT);
	expect_eq(limited_stats(&home).timed_out, 1);
	expect_eq(limited_stats(&home).pending, 0);
	expect_eq(load.releases, 0); /* it may still use what is the job's */
}

static struct tw_limiter_task timed_task(void)
{
	looks = retried = 0;
	struct tw_limiter_task task = load_task(&load);
	task.timeout_ns = TOTAL * MS;
	task.retry = (struct tw_retry){.count = 3, .delay_ns = MS};
	return task;
}

static void expect_timed_out_once(unsigned starts)
{
	limited_advance(&home, 50 * MS);
	expect_eq(looks, 1);
	expect_eq(load.starts, starts);
	expect_settled(&load, TW_JOB_STATUS_TIMED_OUT, -ETIMEDOUT);
	expect_eq(load.releases, 1);
	expect_eq(limited_stats(&home).timed_out, 1);
	close_all();
}

static bool allow_slowly(void *arg, tw_job job, int error, uint32_t attempt, int64_t *delay_ns)
{
	let_its_time_pass();
	return true;
}

static bool allow_with_a_bad_delay(void *arg, tw_job job, int error, uint32_t attempt,
				   int64_t *delay_ns)
{
	allow_slowly(arg, job, error, attempt, delay_ns);
	limited_pump(&home); /* `done` need not wait for it */
	expect_eq(load.dones, 1);
	expect_eq(load.releases, 0);
	*delay_ns = -1;
	return true;
}

static void start_slowly(void *arg, tw_job job, uint64_t id, uint32_t attempt)
{
	let_its_time_pass();
}

/* The attempt ends meanwhile, and would be retried. */
static void stop_slowly(void *arg, tw_job job, enum tw_job_status why)
{
	expect_ge(tw_job_complete(home.limiter, job, -EIO, NULL), 0);
	let_its_time_pass();
	expect_eq(load.dones, 0); /* `done` comes after it */
}

static int fail_and_stay(void *arg, struct tw_job_run *run)
{
	load.starts++;
	expect_eq(tw_job_complete(home.limiter, run->job, -EIO, NULL), 0);
	let_its_time_pass();
	expect_eq(load.stops, 0);
	return TW_JOB_PENDING;
}

Test(limiter_slow_user, user_code_that_takes_long_does_not_delay_the_settle)
{
	static const struct {
		tw_retry_fn *allow;
		void (*started)(void *arg, tw_job job, uint64_t id, uint32_t attempt);
		tw_job_stop_fn *stop;
		tw_job_fn *fn;
		bool held, plain; /* asynchronous; without `stop` */
	} rows[] = {
	    {.allow = allow_slowly},
	    {.allow = allow_with_a_bad_delay}, /* an answer that comes late is ignored */
	    {.started = start_slowly},
	    {.started = start_slowly, .plain = true},
	    {.stop = stop_slowly, .held = true},
	    {.fn = fail_and_stay, .held = true},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct tw_limiter_config config = limited_config(1);
		load = LOAD((int)i, .answer = -EIO, .held = rows[i].held);
		limited_hook(&config, (struct limited_hooks){.started = rows[i].started});
		open_with(config);
		struct tw_limiter_task task = timed_task();
		task.retry.allow = rows[i].allow;
		task.fn = rows[i].fn ? rows[i].fn : task.fn;
		if (rows[i].stop || rows[i].plain)
			task.stop = rows[i].stop;
		task.attempt_timeout_ns = rows[i].stop ? 5 * MS : 0;
		load_submit_task(&load, &task);
		limited_advance(&home, 6 * MS);
		expect_timed_out_once(1);
	}
}

static bool never_asked(void *arg, tw_job job, int error, uint32_t attempt, int64_t *delay_ns)
{
	cr_assert_fail("asked about a job that has settled");
	return true;
}

/* Every thread of the executor is busy. The predicate's turn comes after the timeout. */
Test(limiter_slow_user, predicate_that_is_not_called_in_time_is_not_called)
{
	for (int plain = 0; plain < 2; plain++) {
		load = LOAD(1, .held = true);
		open_started(1);
		struct tw_limiter_task task = timed_task();
		task.retry.allow = never_asked;
		if (plain) {
			task.done = NULL;
			task.flags |= TW_LIMITER_TASK_KEEP;
		}
		load_submit_task(&load, &task);
		limited_pump(&home);
		expect_eq(tw_job_complete(home.limiter, load.attempt, -EIO, NULL), 0);
		expect_eq(tw_job_state(home.limiter, load.job), TW_JOB_STATE_RETRYING);
		expect_eq(limited_stats(&home).pending, 1);
		expect_eq(limited_stats(&home).running, 0);
		let_its_time_pass();
		expect_eq(load.dones, 0);
		limited_advance(&home, 50 * MS);
		expect_eq(load.dones, plain ? 0 : 1);
		expect_eq(load.releases, 1);
		expect_eq(load.starts, 1);
		close_all();
	}
}

static unsigned asked;

static bool count_asked(void *arg, tw_job job, int error, uint32_t attempt, int64_t *delay_ns)
{
	asked++;
	return true;
}

/* The thread that completes a job may be one that must not block. */
Test(limiter_slow_user, predicate_runs_on_the_executor)
{
	load = LOAD(1, .held = true);
	open_started(1);
	struct tw_limiter_task task = timed_task();
	task.retry.allow = count_asked;
	load_submit_task(&load, &task);
	limited_pump(&home);
	expect_eq(tw_job_complete(home.limiter, load.attempt, -EIO, NULL), 0);
	expect_eq(asked, 0);
	limited_pump(&home);
	expect_eq(asked, 1);
	limited_advance(&home, 2 * MS);
	expect_eq(load.starts, 2);
	complete(&load, 0); /* the handle of the submit: the attempt that runs */
	expect_settled(&load, TW_JOB_STATUS_SUCCEEDED, 0);
}

/* What the predicate may use is the job's until it has returned. */
static bool cancelled_meanwhile(void *arg, tw_job job, int error, uint32_t attempt,
				int64_t *delay_ns)
{
	looks++;
	expect_eq(tw_job_cancel(home.limiter, job), TW_RUNNING);
	limited_pump(&home);
	expect_eq(load.dones + load.releases, 0);
	return true;
}

Test(limiter_slow_user, cancel_waits_for_the_predicate)
{
	load = LOAD(1, .answer = -EIO);
	open_started(1);
	struct tw_limiter_task task = timed_task();
	task.retry.allow = cancelled_meanwhile;
	load_submit_task(&load, &task);
	limited_pump(&home);
	expect_settled(&load, TW_JOB_STATUS_CANCELLED, -EIO);
	expect_eq(load.releases, 1);
}

static void retry_slowly(void *arg, tw_job job, uint64_t id, uint32_t attempt, uint64_t delay_ns)
{
	looks++;
	expect_eq(tw_job_state(home.limiter, load.job), TW_JOB_STATE_RETRYING);
	rig_advance(&home.rig, (TOTAL + 5) * MS);
	expect_eq(tw_job_state(home.limiter, load.job), TW_JOB_STATE_SETTLED);
	expect_eq(limited_stats(&home).timed_out, 1);
}

Test(limiter_slow_user, retried_that_takes_long_does_not_delay_the_settle)
{
	struct tw_limiter_config config = limited_config(1);
	load = LOAD(1, .answer = -EIO);
	limited_hook(&config, (struct limited_hooks){.retried = retry_slowly});
	open_with(config);
	struct tw_limiter_task task = timed_task();
	task.retry.delay_ns = (TOTAL - 1) * MS; /* no second attempt before the end */
	load_submit_task(&load, &task);
	limited_pump(&home);
	limited_advance(&home, MS);
	expect_eq(looks, 1);
	expect_eq(load.dones, 1);
	expect_eq(load.result.status, TW_JOB_STATUS_TIMED_OUT);
}

/* ---------------------------------------------------------------- started */

static int settled_hooks;

static void take_long(void *arg, tw_job job, uint64_t id, uint32_t attempt)
{
	limited_advance(&home, 20 * MS);
	expect_eq(settled_hooks, 0);
}

static void count_settled(void *arg, tw_job job, const struct tw_job_result *result)
{
	settled_hooks++;
}

Test(limiter_slow_user, settled_is_not_called_before_started_has_returned)
{
	for (int total = 0; total < 2; total++) {
		load = LOAD(1, .held = true);
		struct tw_limiter_config config = limited_config(1);
		limited_hook(&config, (struct limited_hooks){.started = take_long,
							     .settled = count_settled});
		settled_hooks = 0;
		open_with(config);
		struct tw_limiter_task task = load_task(&load);
		*(total ? &task.timeout_ns : &task.attempt_timeout_ns) = 10 * MS;
		load_submit_task(&load, &task);
		limited_pump(&home);
		expect_eq(load.starts, 1);
		limited_advance(&home, MS); /* the driver looks in the next tick */
		expect_eq(settled_hooks, 1);
		expect_eq(load.stops, 1);
		expect_settled(&load, TW_JOB_STATUS_TIMED_OUT, -ETIMEDOUT);
		expect_eq(tw_job_complete(home.limiter, load.attempt, 0, NULL), TW_JOB_LATE);
		close_all();
	}
}

static struct load waiting;
static struct submitter submitter;

static void begin_to_wait(void *arg, tw_job job, uint64_t id, uint32_t attempt)
{
	if (id != 1)
		return;
	submitter_begin(&submitter, &waiting, load_task(&waiting));
}

/* When it began to wait, nobody knew when the token would be back. */
Test(limiter_slow_user, who_waits_for_room_during_started_is_woken_by_the_token)
{
	struct load first = LOAD(1);
	struct tw_limiter_config config = limited_config(2);
	config.flags = TW_LIMITER_NO_QUEUE;
	config.rate_starts = 1;
	config.rate_interval_ns = 10 * MS;
	limited_hook(&config, (struct limited_hooks){.started = begin_to_wait});
	waiting = LOAD(2);
	open_with(config);
	load_submit(&first);
	limited_pump(&home);
	rig_advance(&home.rig, 10 * MS);
	expect_eq(submitter_end(&submitter), 0);
	limited_pump(&home);
	expect_settled(&waiting, TW_JOB_STATUS_SUCCEEDED, 0);
	expect_eq(waiting.started_ns[0], 10 * MS);
}
