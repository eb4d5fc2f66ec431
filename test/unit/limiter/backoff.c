/* Retries that a predicate decides. On a clock moved by hand. */
#include <errno.h>
#include <string.h>

#include "test/support/limiter_script.h"
#include "test/support/retry_suite.h"

TestSuite(limiter_backoff, .fini = close_left);

static void say_misuse(const struct words *words)
{
	say("%s", text);
}

static const struct verb verbs[] = {{"misuse", say_misuse}, {NULL, NULL}};

static const struct script predicates[] = {
    {"refuses a retry; its delay is of no matter",
     "",
     {{"submit asks 0 error=ENOENT retries=5 delay=3 refuse chosen=-7",
       "start 0, asked about ENOENT of 1, 3, 0 failed ENOENT"}}},
    {"sees and changes the delay",
     "hooks",
     {{"submit asks 0 error=EIO fails=2 retries=2 delay=3 factor=300 chosen=40",
       "started 0, start 0, asked about EIO of 1, 3, retried 0 after 40"},
      {"advance 100",
       "@40 started 0, start 0, asked about EIO of 2, 9, retried 0 after 40, @80 started 0, "
       "start 0, settled 0, 0 ok, idle"}}},
    {"is asked only about retries that the rest allows",
     "",
     {{"submit asks 0 error=EIO retries=0", "start 0, 0 failed EIO"},
      {"submit asks 1 retries=3", "start 1, 1 ok"},
      {"submit asks 2 error=EIO retries=9 deadline=19 chosen=20", /* the deadline binds it */
       "start 2, asked about EIO of 1, 0, 2 failed EIO"}}},
    {"decides about timed-out attempts, whose error and value are ignored",
     "",
     {{"submit asks 0 held attempt=10 retries=3 refuse", "start 0"},
      {"advance 15", "@10 stop 0 timed out"},
      {"complete 0 EIO; -", "@15 LATE, -, asked about ETIMEDOUT of 1, 0, 0 timed out"}}},
    {"a negative delay fails the job",
     "",
     {{"submit asks 0 error=EIO retries=5 chosen=-2",
       "start 0, asked about EIO of 1, 0, 0 failed EINVAL"},
      {"misuse; stats retried",
       "retry.allow: delay_ns has a value that the header does not allow, retried=0"}}},
    {"a delay that is too long fails the job",
     "",
     {{"submit asks 0 error=EIO retries=5 chosen=9223372036854775807",
       "start 0, asked about EIO of 1, 0, 0 failed EINVAL"},
      {"misuse; stats retried",
       "retry.allow: delay_ns has a value that the header does not allow, retried=0"}}},
};

Test(limiter_backoff, predicates)
{
	tw_set_misuse_hook(keep_text);
	PLAY(&limiter_stage, verbs, predicates);
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
