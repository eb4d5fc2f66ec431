/* The limiter: its permits, its line, completions, priority. On a clock moved by hand. */
#include <errno.h>

#include "test/support/limiter_suite.h"

TestSuite(limiter, .fini = close_left);

/* -------------------------------------------------------------- worked check */

static const uint64_t takes_ms[] = {2000, 1000, 3000, 1500, 500};
static const uint64_t starts_ms[] = {0, 0, 0, 1000, 2000};
static const uint64_t ends_ms[] = {2000, 1000, 3000, 2500, 2500};

static void check_worked_example(struct load *loads)
{
	for (int i = 0; i < 5; i++) {
		expect_settled(&loads[i], TW_JOB_STATUS_SUCCEEDED, 0);
		expect_eq(loads[i].starts, 1);
		expect_eq(loads[i].started_ns[0] / MS, starts_ms[i]);
		expect_eq(loads[i].done_ns / MS, ends_ms[i]);
		expect_eq(loads[i].result.id, i + 1);
		expect_eq(loads[i].result.queued_ns / MS, starts_ms[i]);
		expect_eq(loads[i].result.run_ns / MS, takes_ms[i]);
	}
}

static void submit_worked_example(struct load *loads)
{
	for (int i = 0; i < 5; i++) {
		loads[i] = LOAD(i + 1, .takes_ns = takes_ms[i] * MS);
		load_submit(&loads[i]);
	}
}

Test(limiter, worked_example_to_the_millisecond)
{
	struct load loads[5];
	open_started(3);
	submit_worked_example(loads);
	limited_advance(&home, 4000 * MS);
	check_worked_example(loads);
	expect_eq(limited_stats(&home).run_mean_ns, 1600 * MS);
	expect_eq(limited_stats(&home).queue_mean_ns, 600 * MS);
}

/* Each start is the next turn of the driver, a tick later: ticks of 50 us. */
Test(limiter, worked_example_with_jobs_on_the_driving_thread)
{
	struct load loads[5];
	struct tw_service_config fine = rig_config();
	struct tw_limiter_config config = limited_config(3);
	fine.tick_ns = 50000;
	config.executor = tw_executor_inline();
	open_in(&fine, config);
	submit_worked_example(loads);
	rig_advance(&home.rig, 4000 * MS);
	check_worked_example(loads);
}

/* --------------------------------------------------------------- basic rules */

Test(limiter, synchronous_jobs_run_on_the_executor_never_inside_submit)
{
	struct load load = LOAD(1), failing = LOAD(2, .answer = -EIO);
	open_started(1);
	load_submit(&load);
	load_submit(&failing);
	expect_eq(load.starts, 0);
	limited_pump(&home);
	expect_settled(&load, TW_JOB_STATUS_SUCCEEDED, 0);
	expect_eq(load.result.value, &load);
	expect_eq(load.result.attempts, 1);
	expect_eq(load.releases, 1);
	expect_settled(&failing, TW_JOB_STATUS_FAILED, -EIO);
	expect_eq(failing.result.id, 2);
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

Test(limiter, completed_once_and_a_second_time_refused_and_counted)
{
	struct load loads[2];
	open_started(2);
	held(loads, 2);
	complete(&loads[0], -EIO);
	expect_settled(&loads[0], TW_JOB_STATUS_FAILED, -EIO);
	expect_eq(tw_job_complete(home.limiter, loads[0].job, 0, NULL), -EALREADY);
	expect_eq(tw_job_complete(home.limiter, loads[0].attempt, 0, NULL), -EALREADY);
	expect_eq(limited_stats(&home).refused_completions, 2);
	expect_eq(loads[0].dones, 1);
	complete(&loads[1], 0);
	expect_eq(loads[1].dones, 1);
}

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

Test(limiter, completing_one_that_waits_is_refused)
{
	struct load loads[2];
	open_started(1);
	held(loads, 2);
	expect_eq(tw_job_complete(home.limiter, loads[1].job, 0, NULL), -EALREADY);
	expect_eq(tw_job_complete(home.limiter, loads[0].job, 1, NULL), -EINVAL);
	expect_eq(tw_job_complete(home.limiter, loads[0].job, -4096, NULL), -EINVAL);
	expect_eq(tw_job_complete(home.limiter, (tw_job){0}, 0, NULL), -EALREADY);
	expect_eq(limited_stats(&home).refused_completions, 2);
	expect_eq(limited_stats(&home).running, 1);
	complete(&loads[0], 0);
	complete(&loads[1], 0);
}
