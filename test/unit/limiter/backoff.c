/* Retries that the job or its predicate decides. On a clock moved by hand. */
#include <errno.h>
#include <string.h>

#include "test/support/retry_suite.h"

/* ------------------------------------------------------- the attempt decides */

static uint32_t next;
static int64_t next_delay_ns;

/* Fails, and says what follows on its first attempt. */
static int say_next(void *arg, struct tw_job_run *run)
{
	struct load *load = arg;
	expect_eq(run->next, TW_JOB_NEXT_POLICY);
	if (load->starts < LOAD_ATTEMPTS)
		load->started_ns[load->starts] = limited_now(&home);
	if (!load->starts++) {
		run->next = next;
		run->delay_ns = next_delay_ns;
	}
	return -EIO;
}

Test(limiter_backoff, error_that_is_not_retried_fails_the_job)
{
	struct load load = LOAD(1);
	open_with_hook();
	next = TW_JOB_NEXT_FAIL;
	submit_with(&load, say_next, (struct tw_retry){.count = 5, .delay_ns = MS});
	expect_eq(load.starts, 1);
	expect_settled(&load, TW_JOB_STATUS_FAILED, -EIO);
	expect_eq(limited_stats(&home).failed, 1);
	expect_eq(limited_stats(&home).cancelled, 0);
	expect_eq(retries, 0);
	close_all();
}

Test(limiter_backoff, attempt_chooses_the_next_delay_once)
{
	struct load load = LOAD(1);
	open_with_hook();
	next = TW_JOB_NEXT_DELAY;
	next_delay_ns = 70 * MS;
	submit_with(&load, say_next,
		    (struct tw_retry){.count = 3,
				      .delay_ns = 5 * MS,
				      .factor_x100 = 200,
				      .jitter = TW_RETRY_JITTER_NONE});
	limited_advance(&home, 200 * MS);
	/* the policy's delays begin after the chosen one */
	static const uint64_t starts_ms[] = {0, 70, 75, 85};
	expect_eq(load.starts, 4);
	for (int i = 0; i < 4; i++)
		expect_eq(load.started_ns[i], starts_ms[i] * MS);
	expect_settled(&load, TW_JOB_STATUS_FAILED, -EIO);
	close_all();
}

Test(limiter_backoff, attempt_may_choose_no_delay)
{
	struct load load = LOAD(1);
	open_with_hook();
	next = TW_JOB_NEXT_DELAY;
	next_delay_ns = 0;
	submit_with(&load, say_next, (struct tw_retry){.count = 1, .delay_ns = 50 * MS});
	limited_advance(&home, 2 * MS);
	expect_eq(load.starts, 2);
	expect_settled(&load, TW_JOB_STATUS_FAILED, -EIO);
	close_all();
}

Test(limiter_backoff, chosen_delay_allows_no_retry_that_the_policy_does_not_allow)
{
	struct load without = LOAD(1), beyond = LOAD(2);
	open_with_hook();
	next = TW_JOB_NEXT_DELAY;
	next_delay_ns = 20 * MS;
	submit_with(&without, say_next, (struct tw_retry){.count = 0});
	expect_settled(&without, TW_JOB_STATUS_FAILED, -EIO);
	submit_with(&beyond, say_next,
		    (struct tw_retry){.count = 9, .delay_ns = MS, .deadline_ns = 19 * MS});
	expect_settled(&beyond, TW_JOB_STATUS_FAILED, -EIO);
	expect_eq(retries, 0);
	close_all();
}

static void expect_undefined(uint32_t kind, int64_t delay_ns, const char *told)
{
	struct load load = LOAD(1);
	open_with_hook();
	next = kind;
	next_delay_ns = delay_ns;
	submit_with(&load, say_next, (struct tw_retry){.count = 5});
	expect_eq(load.starts, 1);
	expect_settled(&load, TW_JOB_STATUS_FAILED, -EINVAL);
	cr_assert_str_eq(text, told);
	close_all();
}

Test(limiter_backoff, undefined_next_of_an_attempt_fails_the_job)
{
	expect_undefined(3, 0, "tw_job_run: next is not an enum tw_job_next");
	expect_undefined(TW_JOB_NEXT_DELAY, -1,
			 "tw_job_run: delay_ns -1: must be 0 to TW_MAX_DELAY_NS");
	expect_undefined(TW_JOB_NEXT_DELAY, INT64_MAX,
			 "tw_job_run: delay_ns 9223372036854775807: must be 0 to TW_MAX_DELAY_NS");
}

/* -------------------------------------------------- the completion decides */

static struct tw_job_end end_of(int error, uint32_t kind, int64_t delay_ns)
{
	return (struct tw_job_end){
	    .size = sizeof(struct tw_job_end), .error = error, .next = kind, .delay_ns = delay_ns};
}

Test(limiter_backoff, completion_decides_as_an_attempt_does)
{
	struct load load = LOAD(1, .held = true), other = LOAD(2, .held = true);
	open_with_hook();
	submit_with(&load, NULL, (struct tw_retry){.count = 5, .delay_ns = MS});
	struct tw_job_end later = end_of(-EAGAIN, TW_JOB_NEXT_DELAY, 30 * MS),
			  last = end_of(-EPIPE, TW_JOB_NEXT_FAIL, 0);
	expect_eq(tw_job_complete_with(home.limiter, load.job, &later), 0);
	limited_advance(&home, 29 * MS);
	expect_eq(load.starts, 1);
	limited_advance(&home, MS);
	expect_eq(load.starts, 2);
	expect_eq(tw_job_complete_with(home.limiter, load.job, &last), 0);
	expect_settled(&load, TW_JOB_STATUS_FAILED, -EPIPE);
	expect_eq(delays_ns[0], 30 * MS);
	expect_eq(retries, 1);

	submit_with(&other, NULL, (struct tw_retry){.count = 5});
	last.error = 0;
	last.value = &load;
	expect_eq(tw_job_complete_with(home.limiter, other.job, &last), 0);
	expect_settled(&other, TW_JOB_STATUS_SUCCEEDED, 0);
	cr_assert_eq(other.result.value, &load);
	close_all();
}

Test(limiter_backoff, undefined_completions_are_refused_and_change_nothing)
{
	struct load load = LOAD(1, .held = true);
	struct tw_job_end negative = end_of(-EIO, TW_JOB_NEXT_DELAY, -5),
			  unknown = end_of(-EIO, 3, 0), positive = end_of(1, 0, 0),
			  good = end_of(-EIO, TW_JOB_NEXT_FAIL, -5);
	open_with_hook();
	submit_with(&load, NULL, (struct tw_retry){.count = 5});
	expect_eq(tw_job_complete_with(home.limiter, load.job, &negative), -ERANGE);
	cr_assert_str_eq(text, "tw_job_complete_with: delay_ns -5: must be 0 to TW_MAX_DELAY_NS");
	expect_eq(tw_job_complete_with(home.limiter, load.job, &unknown), -EINVAL);
	cr_assert_str_eq(text, "tw_job_complete_with: next 3 is unknown");
	expect_eq(tw_job_complete_with(home.limiter, load.job, &positive), -EINVAL);
	expect_eq(tw_job_complete_with(home.limiter, load.job, NULL), -EINVAL);
	expect_eq(tw_job_complete_with(NULL, load.job, &good), -EINVAL);
	unknown.size = 0;
	expect_eq(tw_job_complete_with(home.limiter, load.job, &unknown), -EINVAL);
	expect_eq(tw_job_state(home.limiter, load.job), TW_JOB_STATE_RUNNING);
	expect_eq(tw_job_complete_with(home.limiter, load.job, &good), 0);
	expect_settled(&load, TW_JOB_STATUS_FAILED, -EIO);
	close_all();
}

/* -------------------------------------------------------- a predicate decides */

static struct {
	unsigned asked;
	int error;
	int64_t given_ns, chosen_ns; /* chosen: -1: as given */
	bool answer;
} predicate;

static bool allow(void *arg, tw_job job, int error, int64_t *delay_ns)
{
	expect_eq(((struct load *)arg)->job.id, job.id);
	predicate.asked++;
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
	close_all();
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
	expect_eq(predicate.given_ns, 9 * MS);
	expect_eq(load.started_ns[2], 80 * MS);
	expect_settled(&load, TW_JOB_STATUS_SUCCEEDED, 0);
	close_all();
}

Test(limiter_backoff, predicate_is_asked_only_about_retries_that_the_rest_allows)
{
	struct load last = LOAD(1, .answer = -EIO), good = LOAD(2), told = LOAD(3);
	open_with_hook();
	predicate_is(true, -1);
	submit_with(&last, NULL, (struct tw_retry){.count = 0, .allow = allow});
	submit_with(&good, NULL, (struct tw_retry){.count = 3, .allow = allow});
	next = TW_JOB_NEXT_FAIL;
	submit_with(&told, say_next, (struct tw_retry){.count = 3, .allow = allow});
	expect_eq(predicate.asked, 0);
	expect_settled(&last, TW_JOB_STATUS_FAILED, -EIO);
	expect_settled(&told, TW_JOB_STATUS_FAILED, -EIO);
	close_all();
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
	/* ignored, as its error */
	struct tw_job_end end = end_of(-EIO, TW_JOB_NEXT_DELAY, 99 * MS);
	end.value = &load; /* stays the caller's: the answer says so */
	expect_eq(tw_job_complete_with(home.limiter, load.job, &end), TW_JOB_LATE);
	limited_pump(&home); /* the executor asks */
	expect_eq(load.result.value, NULL);
	expect_eq(predicate.asked, 1);
	expect_eq(predicate.error, -ETIMEDOUT);
	expect_eq(predicate.given_ns, 0);
	expect_settled(&load, TW_JOB_STATUS_TIMED_OUT, -ETIMEDOUT);
	close_all();
}

static void expect_bad_choice(int64_t delay_ns, const char *told)
{
	struct load load = LOAD(1, .answer = -EIO);
	open_with_hook();
	predicate_is(true, delay_ns);
	submit_with(&load, NULL, (struct tw_retry){.count = 5, .allow = allow});
	expect_settled(&load, TW_JOB_STATUS_FAILED, -EINVAL);
	expect_eq(load.starts, 1);
	cr_assert_str_eq(text, told);
	close_all();
}

Test(limiter_backoff, bad_delay_of_a_predicate_fails_the_job)
{
	expect_bad_choice(
	    -2, "retry.allow of a limiter's job: delay_ns -2: must be 0 to TW_MAX_DELAY_NS");
	expect_bad_choice(
	    INT64_MAX, "retry.allow of a limiter's job: delay_ns 9223372036854775807: must be 0 to "
		       "TW_MAX_DELAY_NS");
}

static struct load inner;

static bool re_enter(void *arg, tw_job job, int error, int64_t *delay_ns)
{
	(void)arg;
	(void)error;
	(void)delay_ns;
	expect_eq(tw_job_wait(home.limiter, job, TW_FOREVER, NULL), -EDEADLK);
	cr_assert_str_eq(text, "tw_job_wait: called by the job itself, or by one of its callbacks");
	static const char inside[] = "called from one of the limiter's jobs or callbacks";
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
	close_all();
}
