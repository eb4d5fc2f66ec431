/*
 * The clock decides what is late, and the driver keeps the times: whatever the executor does. On a
 * clock moved by hand.
 */
#include <errno.h>

#include "test/support/limiter_script.h"
#include "test/support/limiter_suite.h"

TestSuite(limiter_clock, .fini = close_left, .timeout = 60);

static const struct script stuck_ones[] = {
    {"times are kept while the executor runs nothing",
     "limit=2 stuck",
     {{"submit 0 held attempt=5; submit 2 error=EIO retries=1 delay=20 total=8",
       "start 0, start 2, 2 failed EIO"}, /* no time for a retry */
      {"pause; submit 1 queue=3; drive 3; stats timed_out; state 1; hold",
       "@3 timed_out=1, SETTLED"},
      {"drive 2; stats timed_out; state 0; -",
       "@5 timed_out=2, SETTLED, -, 1 timed out, stop 0 timed out, 0 timed out"},
      {"end 0", "release 0, LATE"}}},
    {"retry delays and tokens are kept while the service's executor runs nothing",
     "limit=2 rate=2 interval=10 stuck",
     {{"submit 0 error=EIO fails=1 retries=1 delay=5; submit 1", "start 0, start 1, 1 ok"},
      {"advance 9", ""},
      {"advance 1", "@10 start 0, 0 ok"}}},
    {"the idle of a timeout is told on the executor",
     "",
     {{"pause; submit 0 held bare queue=5; on_idle 1", ""},
      {"drive 5; stats timed_out; wait_idle; -", "@5 timed_out=1, ETIMEDOUT, -, listener 1"},
      {"wait_idle", ""}}},
};

Test(limiter_clock, stuck)
{
	PLAY(&limiter_stage, NULL, stuck_ones);
}

static const struct script late_ones[] = {
    {"an attempt that ends after its time is timed out; it is not stopped",
     "",
     {{"submit 0 stays=400 attempt=50", "start 0, @400 0 timed out"}, {"result 0 run", "run=400"}}},
    {"the same with the time in all",
     "",
     {{"submit 0 stays=400 total=50", "start 0, @400 0 timed out"}, {"result 0 run", "run=400"}}},
    {"an attempt that ends in time succeeds",
     "",
     {{"submit 0 stays=49 attempt=50 total=50", "start 0, @49 0 ok"}}},
    {"an attempt that ends after its time is tried again",
     "",
     {{"submit 0 stays=400 attempt=50 retries=1 delay=1", "start 0"},
      {"state 0; advance 2; result 0 attempts",
       "@400 RETRYING, @401 start 0, 0 ok, @402 attempts=2"}}},
    {"a job learns from the clock that it is past its time",
     "",
     {{"submit 0 attempt=50 {is_cancelled 0; pass 60; is_cancelled 0}",
       "start 0, goes on, @60 is cancelled, 0 timed out"}}},
    {"a job whose time passes while its submit waits for room is timed out",
     "pending=1",
     {{"submit 0 held", "start 0"},
      {"submit 1 held {submitted}; submit_waiting 2 total=50; pass 60; complete 0",
       "@60 0 ok, start 1, 2 timed out"},
      {"complete 1", "1 ok"}}},
    {"its submit does not wait for room beyond that time, though no permit comes back",
     "pending=1",
     {{"submit 0 held", "start 0"},
      {"submit 1 held; submit_waiting 2 total=50; drive 50; submitted; advance 1",
       "@51 2 timed out"},
      {"stats pending; complete 0", "pending=1, 0 ok, start 1"},
      {"complete 1", "1 ok"}}},
    {"completed after its time, an attempt is timed out, and so it is answered",
     "",
     {{"submit 0 held attempt=50", "start 0"},
      {"pass 60; end 0; end 0", "@60 0 timed out, LATE, EALREADY"}}},
};

Test(limiter_clock, late)
{
	PLAY(&limiter_stage, NULL, late_ones);
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

/* -------------------------------------------------------------------------- slices */

static uint64_t takes_ns;
static unsigned ran;

static int take(void *arg, struct tw_job_run *run)
{
	ran++;
	limited_pass(&home, takes_ns);
	return 0;
}

/* One thread runs jobs of a limiter for 5 ms, then other work of the executor gets its turn. */
static void expect_a_row_of(unsigned jobs, uint64_t each_ns)
{
	takes_ns = each_ns;
	ran = 0;
	open_started(1);
	for (int i = 0; i < 12; i++)
		expect_eq(tw_limiter_submit(home.limiter, take, NULL, NULL), 0);
	expect_eq(queue_executor_waiting(&home.queue), 1);
	expect_eq(queue_executor_run_next(&home.queue), 1);
	expect_eq(ran, jobs);
	expect_eq(queue_executor_waiting(&home.queue), 1); /* behind what others have brought */
	limited_pump(&home);
	expect_eq(ran, 12);
	close_all();
}

Test(limiter_clock, runs_jobs_in_a_row_for_5_ms)
{
	expect_a_row_of(1, 10 * MS);
	expect_a_row_of(3, 2 * MS);
}
