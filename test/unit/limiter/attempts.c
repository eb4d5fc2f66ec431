/* Answers that name an attempt count for that attempt alone. On a clock moved by hand. */
#include <errno.h>

#include "test/support/limiter_suite.h"

TestSuite(limiter_attempts, .fini = close_left, .timeout = 60);

enum { ATTEMPTS = 40 };

static struct load load;
static tw_job seen[ATTEMPTS + 1]; /* by attempt */
static unsigned last;

static int keep_handle(void *arg, struct tw_job_run *run)
{
	expect_le(run->attempt, ATTEMPTS);
	seen[run->attempt] = run->job;
	last = run->attempt;
	return TW_JOB_PENDING;
}

static struct tw_limiter_task task_with_retries(void)
{
	load = LOAD(1, .held = true);
	last = 0;
	struct tw_limiter_task task = load_task(&load);
	task.fn = keep_handle;
	task.retry = (struct tw_retry){.count = ATTEMPTS - 1, .delay_ns = MS};
	return task;
}

Test(limiter_attempts, answer_to_another_attempt_never_counts_however_many_there_were)
{
	open_started(1);
	struct tw_limiter_task task = task_with_retries();
	load_submit_task(&load, &task);
	for (unsigned n = 1; n < ATTEMPTS; n++) {
		limited_advance(&home, MS);
		expect_eq(last, n);
		for (unsigned old = 1; old < n; old++)
			expect_eq(tw_job_complete(home.limiter, seen[old], 0, NULL), -EALREADY);
		expect_eq(tw_job_complete(home.limiter, seen[n], -EIO, NULL), 0);
		limited_pump(&home);
	}
	limited_advance(&home, MS);
	expect_eq(tw_job_complete(home.limiter, seen[ATTEMPTS], 0, &load), 0);
	expect_settled(&load, TW_JOB_STATUS_SUCCEEDED, 0);
	expect_eq(load.result.attempts, ATTEMPTS);
}

static tw_job stopped;

static void keep_stopped(void *arg, tw_job job, enum tw_job_status why)
{
	stopped = job;
}

/* `stop` has the answer given by another thread, which comes to it when the next attempt runs. */
Test(limiter_attempts, stop_names_the_attempt_that_it_stops)
{
	open_started(1);
	struct tw_limiter_task task = task_with_retries();
	task.attempt_timeout_ns = 10 * MS;
	task.stop = keep_stopped;
	load_submit_task(&load, &task);
	limited_advance(&home, 15 * MS);
	expect_eq(last, 1);
	tw_job first = stopped;
	expect_eq(tw_job_complete(home.limiter, seen[1], -EIO, NULL), TW_JOB_LATE);
	limited_advance(&home, 2 * MS);
	expect_eq(last, 2);
	expect_eq(tw_job_complete(home.limiter, first, -ECANCELED, NULL), -EALREADY);
	expect_eq(tw_job_complete(home.limiter, seen[2], 0, NULL), 0);
	expect_settled(&load, TW_JOB_STATUS_SUCCEEDED, 0);
}

/* Of one attempt as of the other: what names the job. */
Test(limiter_attempts, handle_of_an_attempt_names_its_job)
{
	open_started(1);
	struct tw_limiter_task task = task_with_retries();
	load_submit_task(&load, &task);
	limited_advance(&home, MS);
	expect_eq(tw_job_complete(home.limiter, load.job, -EIO, NULL), 0);
	limited_advance(&home, 2 * MS);
	expect_eq(last, 2);
	expect_eq(tw_job_state(home.limiter, seen[1]), TW_JOB_STATE_RUNNING);
	expect_eq(tw_job_cancel(home.limiter, seen[1]), TW_RUNNING);
	expect_eq(tw_job_is_cancelled(home.limiter, seen[2]), true);
	expect_eq(tw_job_complete(home.limiter, load.job, -EINTR, NULL), 0);
	expect_settled(&load, TW_JOB_STATUS_CANCELLED, -EINTR);
}
