/* Retries that a predicate decides. On a clock moved by hand. */
#include <errno.h>
#include <string.h>

#include "test/support/retry_suite.h"

TestSuite(limiter_backoff, .fini = close_left);

static struct {
	unsigned asked;
	uint32_t attempt;
	int error;
	int64_t given_ns, chosen_ns; /* chosen: -1: as given */
	bool answer;
} predicate;

static bool allow(void *arg, tw_job job, int error, uint32_t attempt, int64_t *delay_ns)
{
	expect_eq(((struct load *)arg)->job.id, job.id);
	predicate.asked++;
	predicate.attempt = attempt;
	predicate.error = error;
	predicate.given_ns = *delay_ns;
	if (predicate.chosen_ns != -1)
		*delay_ns = predicate.chosen_ns;
	return predicate.answer;
}

static void predicate_is(bool answer, int64_t chosen_ns)
{
	memset(&predicate, 0, sizeof(predicate));
	predicate.answer = answer;
	predicate.chosen_ns = chosen_ns;
}

Test(limiter_backoff, predicate_refuses_a_retry)
{
	struct load load = LOAD(1, .answer = -ENOENT);
	open_with_hook();
	predicate_is(false, -7); /* of no matter */
	submit_with(&load, NULL, (struct tw_retry){.count = 5, .delay_ns = 3 * MS, .allow = allow});
	expect_settled(&load, TW_JOB_STATUS_FAILED, -ENOENT);
	expect_eq(predicate.asked, 1);
	expect_eq(predicate.error, -ENOENT);
	expect_eq(predicate.given_ns, 3 * MS);
	expect_eq(retries, 0);
}

Test(limiter_backoff, predicate_sees_and_changes_the_delay)
{
	struct load load = LOAD(1, .answer = -EIO, .fails = 2);
	open_with_hook();
	predicate_is(true, 40 * MS);
	submit_with(
	    &load, NULL,
	    (struct tw_retry){.count = 2, .delay_ns = 3 * MS, .factor_x100 = 300, .allow = allow});
	limited_advance(&home, 100 * MS);
	expect_eq(predicate.asked, 2);
	expect_eq(predicate.attempt, 2);
	expect_eq(predicate.given_ns, 9 * MS);
	expect_eq(load.started_ns[2], 80 * MS);
	expect_settled(&load, TW_JOB_STATUS_SUCCEEDED, 0);
}

Test(limiter_backoff, predicate_is_asked_only_about_retries_that_the_rest_allows)
{
	struct load last = LOAD(1, .answer = -EIO), good = LOAD(2),
		    beyond = LOAD(3, .answer = -EIO);
	open_with_hook();
	predicate_is(true, -1);
	submit_with(&last, NULL, (struct tw_retry){.count = 0, .allow = allow});
	submit_with(&good, NULL, (struct tw_retry){.count = 3, .allow = allow});
	expect_eq(predicate.asked, 0);
	expect_settled(&last, TW_JOB_STATUS_FAILED, -EIO);
	/* what it chooses is bound by the rest, too */
	predicate.chosen_ns = 20 * MS;
	submit_with(&beyond, NULL,
		    (struct tw_retry){.count = 9, .deadline_ns = 19 * MS, .allow = allow});
	expect_eq(predicate.asked, 1);
	expect_settled(&beyond, TW_JOB_STATUS_FAILED, -EIO);
	expect_eq(retries, 0);
}

Test(limiter_backoff, predicate_decides_about_timed_out_attempts)
{
	struct load load = LOAD(1, .held = true);
	open_with_hook();
	predicate_is(false, -1);
	struct tw_limiter_task task = load_task(&load);
	task.attempt_timeout_ns = 10 * MS;
	task.retry = (struct tw_retry){.count = 3, .allow = allow};
	load_submit_task(&load, &task);
	limited_advance(&home, 15 * MS);
	expect_eq(load.stops, 1);
	expect_eq(load.dones, 0); /* its attempt may be retried, and has not ended */
	/* its error is ignored, and its value stays the caller's: the answer says so */
	expect_eq(tw_job_complete(home.limiter, load.job, -EIO, &load), TW_JOB_LATE);
	limited_pump(&home); /* the executor asks */
	expect_eq(load.result.value, NULL);
	expect_eq(predicate.asked, 1);
	expect_eq(predicate.error, -ETIMEDOUT);
	expect_eq(predicate.given_ns, 0);
	expect_settled(&load, TW_JOB_STATUS_TIMED_OUT, -ETIMEDOUT);
}

static void expect_bad_choice(int64_t delay_ns)
{
	struct load load = LOAD(1, .answer = -EIO);
	open_with_hook();
	predicate_is(true, delay_ns);
	submit_with(&load, NULL, (struct tw_retry){.count = 5, .allow = allow});
	expect_settled(&load, TW_JOB_STATUS_FAILED, -EINVAL);
	expect_eq(load.starts, 1);
	cr_assert_str_eq(text, "retry.allow: delay_ns has a value that the header does not allow");
	close_all();
}

Test(limiter_backoff, bad_delay_of_a_predicate_fails_the_job)
{
	expect_bad_choice(-2);
	expect_bad_choice(INT64_MAX);
}

static struct load inner;

static bool re_enter(void *arg, tw_job job, int error, uint32_t attempt, int64_t *delay_ns)
{
	expect_eq(tw_job_wait(home.limiter, job, TW_FOREVER, NULL), -EDEADLK);
	cr_assert_str_eq(text, "tw_job_wait: called from inside what it would wait for");
	text[0] = 0;
	static const char inside[] = "called from inside what it would wait for";
	expect_eq(tw_limiter_wait_idle(home.limiter, TW_FOREVER), -EDEADLK);
	cr_assert_not_null(strstr(text, inside));
	text[0] = 0;
	expect_eq(tw_limiter_close(home.limiter, TW_CLOSE_DRAIN, TW_FOREVER), -EDEADLK);
	cr_assert_not_null(strstr(text, inside));
	text[0] = 0;
	expect_eq(tw_limiter_destroy(home.limiter), -EDEADLK);
	cr_assert_not_null(strstr(text, inside));
	load_submit(&inner);
	expect_eq(limited_stats(&home).pending, 2);
	expect_eq(tw_job_cancel(home.limiter, job), TW_RUNNING);
	return true;
}

Test(limiter_backoff, predicate_may_call_the_limiter_but_not_wait_for_it)
{
	struct load load = LOAD(1, .answer = -EIO);
	inner = LOAD(2);
	open_with_hook();
	submit_with(&load, NULL, (struct tw_retry){.count = 5, .allow = re_enter});
	expect_settled(&load, TW_JOB_STATUS_CANCELLED, -EIO); /* by the predicate */
	expect_settled(&inner, TW_JOB_STATUS_SUCCEEDED, 0);
	expect_eq(retries, 0);
}
