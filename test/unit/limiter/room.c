/*
 * Waits for room; idle listeners that come again and again; executors that can hold a limiter's
 * jobs.
 */
#include <errno.h>

#include "test/support/limiter_script.h"
#include "test/support/limiter_suite.h"

TestSuite(limiter_room, .fini = close_left, .timeout = 60);

/* ------------------------------------------------------------- waiting for room */

static const struct script rooms[] = {
    {"a permit",
     {{"given no_queue; submit 0 held", "start 0"},
      {"submit_waiting 1; complete 0; submitted", "0 ok, start 1, 1 ok"}}},
    {"a higher limit",
     {{"given no_queue; submit 0 held", "start 0"},
      {"submit_waiting 1; limit 2; submitted", "start 1, 1 ok"},
      {"end 0", "0 ok"}}},
    {"a token",
     {{"given limit=2 no_queue rate=1 interval=10; submit 0 held", "start 0"},
      {"submit_waiting 1; drive 10; submitted", "@10 start 1, 1 ok"},
      {"end 0", "0 ok"}}},
    {"a job that leaves the line for a permit",
     {{"given pending=1; submit 0 held", "start 0"},
      {"submit 1; submit_waiting 2; stats added; complete 0; pump; submitted",
       "added=2, 0 ok, start 1, 1 ok, start 2, 2 ok"}}},
    {"a cancelled job in line, for one who waits until an instant",
     {{"given pending=1; submit 0 held", "start 0"},
      {"submit 1; submit_waiting 2 until; stats added; cancel 1; submitted",
       "added=2, 1 cancelled, CANCELLED"},
      {"end 0", "0 ok, start 2, 2 ok"}}},
    {"a token, for one who began to wait when nobody knew when it would be back",
     {{"given limit=2 no_queue rate=1 interval=10 hooks; submit 0 in_started {submit_waiting 1}",
       "started 0, start 0, settled 0, 0 ok, idle"},
      {"drive 10; submitted", "@10 started 1, start 1, settled 1, 1 ok, idle"}}},
};

Test(limiter_room, whoever_waits_for_room_is_woken_by)
{
	PLAY(&limiter_stage, NULL, rooms);
}

/* ----------------------------------------------------------------- idle listeners */

enum { AGAIN = 100000, IN_A_ROW = 64 };

static int tolds;
static bool inside;

static void listen_again(void *arg, const struct tw_job_result *results, size_t n)
{
	expect_eq(inside, false);
	inside = true;
	if (++tolds < AGAIN)
		expect_eq(tw_limiter_on_idle(home.limiter, listen_again, arg), 0);
	inside = false;
}

/* The executor calls the rest, a bounded number in each turn. */
static void run_in_turns(void)
{
	while (tolds < AGAIN) {
		int before = tolds;
		expect_ne(queue_executor_run_next(&home.queue), -ENOENT);
		expect_le(tolds, before + IN_A_ROW);
		expect_gt(tolds, before);
	}
}

Test(limiter_room, listener_that_listens_again_is_told_again_after_it_returns)
{
	open_started(1);
	expect_eq(tw_limiter_on_idle(home.limiter, listen_again, NULL), 0);
	expect_eq(tolds, IN_A_ROW); /* inside the first call */
	expect_eq(tw_limiter_wait_idle(home.limiter, 0), -ETIMEDOUT);
	expect_eq(tw_limiter_destroy(home.limiter), -EBUSY);
	run_in_turns();
	expect_eq(tw_limiter_wait_idle(home.limiter, 0), 0);
}

/* The executor refuses. Each close calls a bounded number, and the driver none. */
Test(limiter_room, listeners_that_the_executor_refuses_are_told_by_a_close)
{
	unsigned closes = 1;
	open_started(1);
	tolds = AGAIN - 10 * IN_A_ROW;
	home.queue.refuse = SIZE_MAX;
	expect_eq(tw_limiter_on_idle(home.limiter, listen_again, NULL), 0);
	expect_eq(tolds, AGAIN - 9 * IN_A_ROW);
	for (; tw_limiter_close(home.limiter, TW_CLOSE_DROP, 0) == -ETIMEDOUT; closes++) {
		int before = tolds;
		rig_advance(&home.rig, 2 * MS);
		expect_eq(tolds, before);
	}
	expect_eq(tolds, AGAIN);
	expect_eq(closes, 9);
	home.queue.refuse = 0;
}

static void listen_forever(void *arg, const struct tw_job_result *results, size_t n)
{
	if (tolds++ >= 0)
		expect_eq(tw_limiter_on_idle(home.limiter, listen_forever, arg), 0);
}

Test(limiter_room, close_beside_a_listener_that_listens_forever_ends_in_time)
{
	open_started(1);
	expect_eq(tw_limiter_on_idle(home.limiter, listen_forever, NULL), 0);
	expect_eq(tw_limiter_close(home.limiter, TW_CLOSE_DROP, MS), -ETIMEDOUT);
	tolds = -IN_A_ROW;
	expect_eq(tw_limiter_close(home.limiter, TW_CLOSE_DROP, TW_FOREVER), 0);
	queue_executor_run_all(&home.queue);
}

static void bring_a_job(void *arg)
{
	if (++tolds >= AGAIN)
		return;
	expect_eq(tw_limiter_submit(home.limiter, job_succeeds, NULL, NULL), 0);
	queue_executor_run_all(&home.queue); /* idle again, before this returns */
}

Test(limiter_room, event_that_brings_a_job_keeps_no_thread)
{
	tw_job job;
	struct tw_limiter_config config = limited_config(1);
	limited_hook(&config, (struct limited_hooks){.idle = bring_a_job});
	open_with(config);
	expect_eq(tw_limiter_submit(home.limiter, job_succeeds, NULL, &job), 0);
	expect_eq(tw_job_cancel(home.limiter, job), TW_CANCELLED);
	expect_eq(tolds, IN_A_ROW);
	run_in_turns();
}

/* ------------------------------------------------------------------------ capacity */

static int create(tw_executor *executor, uint32_t max_concurrency, uint32_t flags, tw_limiter **out)
{
	struct tw_limiter_config config = limited_config(max_concurrency);
	config.executor = executor;
	config.flags = flags;
	return tw_limiter_create(out, home.rig.service, &config);
}

/* A pool of four holds three jobs that block. Executors that are no pool are not judged. */
Test(limiter_room, executor_that_cannot_hold_its_jobs_is_refused)
{
	tw_pool *pool;
	tw_strand *strand;
	tw_limiter *limiter;
	struct tw_pool_config config = {.size = sizeof config, .workers = 2, .max_workers = 4};
	open_started(1);
	expect_eq(tw_pool_create(&pool, &config), 0);
	tw_executor *executor = tw_pool_executor(pool);
	expect_eq(tw_strand_create(&strand, home.rig.service, executor), 0);
	struct {
		tw_executor *executor;
		uint32_t max_concurrency, flags;
		int wanted;
	} rows[] = {
	    {executor, 3, 0, 0},
	    {executor, 4, 0, -EINVAL},
	    {executor, 1000, 0, -EINVAL},
	    {executor, 4, TW_LIMITER_NONBLOCKING, 0},
	    {tw_strand_executor(strand), 1000, 0, 0},
	    {&home.queue.base, 1000, 0, 0},
	    {tw_executor_inline(), 1000, 0, 0},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		limiter = NULL;
		expect_eq(
		    create(rows[i].executor, rows[i].max_concurrency, rows[i].flags, &limiter),
		    rows[i].wanted);
		expect_eq(limiter != NULL, rows[i].wanted == 0);
		expect_eq(tw_limiter_destroy(limiter), 0);
	}
	expect_eq(create(executor, 1, 0, &limiter), 0);
	expect_eq(tw_limiter_set_max_concurrency(limiter, 3), 0);
	expect_eq(tw_limiter_set_max_concurrency(limiter, 4), -EINVAL);
	struct tw_limiter_stats stats = {.size = sizeof stats};
	expect_eq(tw_limiter_stats(limiter, &stats), 0);
	expect_eq(stats.max_concurrency, 3);
	expect_eq(tw_limiter_destroy(limiter), 0);
	expect_eq(tw_strand_destroy(strand), 0);
	rig_advance(&home.rig, MS);
	expect_eq(tw_pool_destroy(pool), 0);
}
