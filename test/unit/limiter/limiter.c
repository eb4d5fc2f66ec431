/* The limiter: its permits, its results, completions. */
#include <errno.h>

#include "test/support/limiter_script.h"
#include "test/support/limiter_suite.h"

TestSuite(limiter, .fini = close_left);

static const struct script basics[] = {
    {"the worked example",
     "limit=3",
     {{"submit 0 takes=2000; submit 1 takes=1000; submit 2 takes=3000",
       "start 0, start 1, start 2"},
      {"submit 3 takes=1500; submit 4 takes=500", ""},
      {"advance 4000", "@1000 1 ok, start 3, @2000 0 ok, start 4, @2500 3 ok, 4 ok, @3000 2 ok"},
      {"result 3 id queued run; result 4 id queued run",
       "@4000 id=4, queued=1000, run=1500, id=5, queued=2000, run=500"},
      {"stats run_mean_ns queue_mean_ns", "run_mean_ns=1600000000, queue_mean_ns=600000000"}}},
    {"the worked example with jobs on the driving thread",
     "limit=3 inline",
     {{"submit 0 takes=2000; submit 1 takes=1000; submit 2 takes=3000", ""},
      {"submit 3 takes=1500; submit 4 takes=500", ""},
      {"drive 4000",
       "start 0, start 1, start 2, @1000 1 ok, start 3, @2000 0 ok, start 4, @2500 3 ok, 4 ok, "
       "@3000 2 ok"}}},
    {"jobs run on the executor, never inside submit",
     "",
     {{"submit 0; submit 1 error=EIO; -", "-, start 0, 0 ok, start 1, 1 failed EIO"},
      {"result 0 id attempts; result 1 id", "id=1, attempts=1, id=2"}}},
    {"numbers are in the order of submits; higher priorities go first, equals in that order",
     "",
     {{"submit 0 held", "start 0"},
      {"submit 1..3 bare; submit 9 priority=1; submit 4 bare; submit 5 priority=-1; submit 6", ""},
      {"end 0",
       "0 ok, start 9, 9 ok, start 1, start 2, start 3, start 4, start 6, 6 ok, start 5, 5 ok"},
      {"result 1 id; result 9 id; result 4 id; result 6 id", "id=2, id=5, id=6, id=8"}}},
    {"a job is completed once; a second time is refused and counted",
     "limit=2",
     {{"submit 0 1 held", "start 0, start 1"},
      {"end 0 EIO; complete 0; end 0", "0 failed EIO, EALREADY, EALREADY"},
      {"end 1; stats refused_completions", "1 ok, refused_completions=2"}}},
    {"completing one that waits, with a bad error, and one that is not there",
     "",
     {{"submit 0 1 held", "start 0"},
      {"complete 1; complete 0 1; complete 0 -4096; complete 9",
       "EALREADY, EINVAL, EINVAL, EALREADY"},
      {"stats refused_completions running", "refused_completions=2, running=1"},
      {"end 0", "0 ok, start 1"},
      {"end 1", "1 ok"}}},
};

Test(limiter, basics)
{
	PLAY(&limiter_stage, NULL, basics);
}

static int odd_answer(void *arg, struct tw_job_run *run)
{
	return *(int *)arg;
}

static struct tw_job_result seen;

static void note_result(void *arg, const struct tw_job_result *result)
{
	seen = *result;
}

/* A result that is not defined fails the job, and its permit comes back. */
Test(limiter, results_of_a_function)
{
	static struct {
		int result, error;
		bool async;
	} rows[] = {
	    {-ECONNREFUSED, -ECONNREFUSED, true},
	    {TW_JOB_PENDING, -EINVAL, false},
	    {2, -EINVAL, false},
	    {2, -EINVAL, true},
	    {1000, -EINVAL, true},
	    {-4096, -EINVAL, false},
	    {-4096, -EINVAL, true},
	    {INT32_MIN, -EINVAL, true},
	    {INT32_MAX, -EINVAL, false},
	};
	open_started(1);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct tw_limiter_task task = {.size = sizeof(task),
					       .fn = odd_answer,
					       .arg = &rows[i].result,
					       .done = note_result,
					       .flags = rows[i].async ? TW_LIMITER_TASK_ASYNC : 0};
		expect_eq(tw_limiter_submit_task(home.limiter, &task, NULL), 0);
		limited_pump(&home);
		expect_eq(seen.status, TW_JOB_STATUS_FAILED);
		cr_assert(seen.error == rows[i].error, "row %zu: error %d", i, seen.error);
		expect_eq(limited_stats(&home).running, 0);
	}
}

/* ------------------------------------------------------------------ complete */

static int complete_inside(void *arg, struct tw_job_run *run)
{
	int *answers = arg;
	answers[0] = tw_job_complete(run->limiter, run->job, 0, arg);
	answers[1] = tw_job_complete(run->limiter, run->job, -EIO, NULL);
	return answers[2];
}

Test(limiter, completed_before_its_function_returns)
{
	int answers[3] = {7, 7, TW_JOB_PENDING};
	struct tw_limiter_task task = {.size = sizeof(task),
				       .fn = complete_inside,
				       .arg = answers,
				       .done = note_result,
				       .flags = TW_LIMITER_TASK_ASYNC};
	open_started(1);
	expect_eq(tw_limiter_submit_task(home.limiter, &task, NULL), 0);
	limited_pump(&home);
	expect_eq(answers[0], 0);
	expect_eq(answers[1], -EALREADY);
	expect_eq(seen.status, TW_JOB_STATUS_SUCCEEDED);
	expect_eq(seen.value, answers);
	answers[2] = -EIO; /* a result besides the completion is a second one */
	expect_eq(tw_limiter_submit_task(home.limiter, &task, NULL), 0);
	limited_pump(&home);
	expect_eq(seen.status, TW_JOB_STATUS_SUCCEEDED);
	expect_eq(limited_stats(&home).refused_completions, 3);
}

Test(limiter, completing_a_synchronous_job_is_refused_and_counted)
{
	int answers[3] = {7, 7, 0};
	struct tw_limiter_task task = {
	    .size = sizeof(task), .fn = complete_inside, .arg = answers, .done = note_result};
	open_started(1);
	tw_job job;
	expect_eq(tw_limiter_submit_task(home.limiter, &task, &job), 0);
	expect_eq(tw_job_complete(home.limiter, job, 0, NULL), -EINVAL); /* while it waits */
	limited_pump(&home);
	expect_eq(answers[0], -EINVAL); /* and while it runs */
	expect_eq(answers[1], -EINVAL);
	expect_eq(seen.status, TW_JOB_STATUS_SUCCEEDED);
	expect_eq(limited_stats(&home).refused_completions, 3);
}
