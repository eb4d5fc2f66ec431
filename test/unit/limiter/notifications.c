/*
 * Which notifications the limiter sends when callbacks and other threads act in between. On a clock
 * moved by hand.
 */
#include <errno.h>
#include <pthread.h>

#include "test/support/limiter_script.h"
#include "test/support/limiter_suite.h"

TestSuite(limiter_notifications, .fini = close_left, .timeout = 60);

static const struct script notifications[] = {
    {"a done function that takes long keeps no permit, and no job that waits",
     {{"submit 0 in_done {pump; -}; submit 1", "start 0, 0 ok, start 1, 1 ok, -"}}},
    {"the same of a job that comes meanwhile",
     {{"submit 0 in_done {submit 1; pump; -}", "start 0, 0 ok, start 1, 1 ok, -"}}},
    {"listeners get their results though a job was submitted before they were told",
     {{"given collect hooks [submit 1 held]; submit 0; on_idle 1",
       "started 0, start 0, settled 0, 0 ok, idle, listener 1, result 0 ok, started 1, start 1"},
      {"end 1", "settled 1, 1 ok, idle"}}},
    {"a listener of after a submit is not told of the idle before",
     {{"given paused hooks [submit 1 held; on_idle 1]; submit 0; cancel 0",
       "settled 0, 0 cancelled, idle, CANCELLED"},
      {"resume", "started 1, start 1"},
      {"end 1", "settled 1, 1 ok, idle, listener 1"}}},
    {"a job between two attempts is in the statistics",
     {{"given hooks; submit 0 error=EIO fails=1 retries=1 delay=1 in_retried {stats running added "
       "pending}",
       "started 0, start 0, retried 0 after 1, running=0, added=1, pending=1"},
      {"advance 3", "@1 started 0, start 0, settled 0, 0 ok, idle"}}},
    {"a wait for room is no stay in line",
     {{"given pending=1; submit 0 held", "start 0"},
      {"submit 1 held; submit_waiting 2 held queue=10; drive 50; complete 0", "@50 0 ok, start 1"},
      {"submitted; advance 5; complete 1", "@55 1 ok, start 2"}, /* its time in line is 10 ms */
      {"complete 2; result 2 queued", "2 ok, queued=5"}}},
    {"a pause that refuses refuses those who wait for room",
     {{"given pending=1 paused_refuses; submit 0 held", "start 0"},
      {"submit 1; submit_waiting 2; pause; submitted; close drop", "EBUSY, 1 dropped, ETIMEDOUT"},
      {"complete 0", "0 ok"}}},
    {"a drain refuses those who wait for room",
     {{"given pending=1; submit 0 held", "start 0"},
      {"submit 1; submit_waiting 2; close drain; submitted", "ETIMEDOUT, ESHUTDOWN"},
      {"complete 0", "0 ok, start 1, 1 ok"}}},
};

Test(limiter_notifications, notifications)
{
	PLAY(&limiter_stage, NULL, notifications);
}

static unsigned idles;

static void on_idle(void *arg, const struct tw_job_result *results, size_t n)
{
	idles++;
}

static pthread_t waiter;
static int waited = 1;

static void *submit_and_wait(void *arg)
{
	if (tw_limiter_submit(home.limiter, job_succeeds, NULL, NULL) == 0)
		waited = tw_limiter_wait_idle(home.limiter, 50 * MS);
	return NULL;
}

/*
 * During the notification, a thread submits a job, which cannot run yet, and waits for the next
 * idle.
 */
static void let_another_wait(void *arg, const struct tw_job_result *results, size_t n)
{
	on_idle(arg, results, n);
	expect_eq(tw_limiter_set_paused(home.limiter, true), 0);
	expect_eq(pthread_create(&waiter, NULL, submit_and_wait, NULL), 0);
	limited_await_end_waiter(&home);
}

Test(limiter_notifications, who_waits_after_a_submit_does_not_wait_for_the_idle_before)
{
	struct load load = LOAD(1);
	open_started(1);
	load_submit(&load);
	expect_eq(tw_limiter_on_idle(home.limiter, let_another_wait, NULL), 0);
	limited_pump(&home);
	expect_eq(idles, 1);
	expect_eq(pthread_join(waiter, NULL), 0);
	expect_eq(waited, -ETIMEDOUT);
	expect_eq(tw_limiter_set_paused(home.limiter, false), 0);
	limited_pump(&home);
}
