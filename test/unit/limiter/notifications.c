/*
 * Which notifications the limiter sends when callbacks and other threads act in between. On a clock
 * moved by hand.
 */
#include <errno.h>
#include <pthread.h>

#include "test/support/limiter_suite.h"

TestSuite(limiter_notifications, .fini = close_left, .timeout = 60);

/* At limit 1 nobody else could start the second. */
static struct load second;

static void start_the_second(void *arg, const struct tw_job_result *result)
{
	struct load *first = arg;
	limited_pump(&home);
	first->dones++;
	expect_eq(second.dones, 1);
}

static void submit_and_start_the_second(void *arg, const struct tw_job_result *result)
{
	load_submit(&second);
	start_the_second(arg, result);
}

/* The other job waits, or comes meanwhile. */
Test(limiter_notifications, done_that_takes_long_keeps_no_permit_and_no_job_waiting)
{
	for (int meanwhile = 0; meanwhile < 2; meanwhile++) {
		struct load first = LOAD(1);
		second = LOAD(2);
		open_started(1);
		struct tw_limiter_task task = load_task(&first);
		task.done = meanwhile ? submit_and_start_the_second : start_the_second;
		load_submit_task(&first, &task);
		if (!meanwhile)
			load_submit(&second);
		limited_pump(&home);
		expect_eq(first.dones, 1);
		close_all();
	}
}

/* ---------------------------------------------------------------------- idle */

static unsigned idles;
static size_t idle_n;
static struct load later;

static void on_idle(void *arg, const struct tw_job_result *results, size_t n)
{
	idles++;
	idle_n = n;
}

static void submit_later(void *arg)
{
	if (!later.job.id)
		load_submit(&later);
}

Test(limiter_notifications,
     listeners_get_their_results_though_a_job_was_submitted_before_they_were_told)
{
	struct load load = LOAD(1);
	struct tw_limiter_config config = limited_config(1);
	config.flags = TW_LIMITER_COLLECT;
	limited_hook(&config,
		     (struct limited_hooks){.idle = submit_later}); /* called before listeners */
	later = LOAD(2, .held = true);
	open_with(config);
	load_submit(&load);
	expect_eq(tw_limiter_on_idle(home.limiter, on_idle, NULL), 0);
	limited_pump(&home);
	expect_eq(idles, 1);
	expect_eq(idle_n, 1);
	expect_eq(tw_job_complete(home.limiter, later.job, 0, NULL), 0);
}

static void submit_and_listen(void *arg)
{
	if (later.job.id)
		return;
	submit_later(arg);
	expect_eq(tw_limiter_on_idle(home.limiter, on_idle, NULL), 0);
}

Test(limiter_notifications, listener_of_after_a_submit_is_not_told_of_the_idle_before)
{
	struct tw_limiter_config config = limited_config(1);
	/* called when the only job was cancelled, before listeners */
	limited_hook(&config, (struct limited_hooks){.idle = submit_and_listen});
	later = LOAD(2, .held = true);
	limited_open(&home, &config);
	tw_job only;
	expect_eq(tw_limiter_submit(home.limiter, job_succeeds, NULL, &only), 0);
	expect_eq(tw_job_cancel(home.limiter, only), TW_CANCELLED);
	expect_eq(later.starts, 0);
	expect_eq(idles, 0); /* it has been submitted, and waits */
	expect_eq(tw_limiter_set_paused(home.limiter, false), 0);
	limited_pump(&home);
	expect_eq(idles, 0);
	expect_eq(tw_job_complete(home.limiter, later.job, 0, NULL), 0);
	expect_eq(idles, 1);
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

/* --------------------------------------------------------------------- stats */

static unsigned looks;

static void look(void *arg, tw_job job, uint64_t id, uint32_t attempt, uint64_t delay_ns)
{
	struct tw_limiter_stats stats = limited_stats(&home);
	looks++;
	expect_eq(stats.running, 0);
	expect_eq(stats.added, stats.pending);
}

Test(limiter_notifications, job_between_two_attempts_is_in_the_stats)
{
	struct load load = LOAD(1, .answer = -EIO, .fails = 1);
	struct tw_limiter_config config = limited_config(1);
	limited_hook(&config, (struct limited_hooks){.retried = look});
	open_with(config);
	struct tw_limiter_task task = load_task(&load);
	task.retry = (struct tw_retry){.count = 1, .delay_ns = MS};
	load_submit_task(&load, &task);
	limited_advance(&home, 3 * MS);
	expect_eq(looks, 1);
	expect_settled(&load, TW_JOB_STATUS_SUCCEEDED, 0);
}

/* ---------------------------------------------------------------------- room */

Test(limiter_notifications, wait_for_room_is_no_stay_in_line)
{
	struct load first = LOAD(1, .held = true), line = LOAD(2, .held = true),
		    load = LOAD(3, .held = true);
	struct submitter submitter;
	struct tw_limiter_config config = limited_config(1);
	config.max_pending = 1;
	open_with(config);
	load_submit(&first);
	limited_pump(&home);
	load_submit(&line);
	struct tw_limiter_task task = load_task(&load);
	task.queue_timeout_ns = 10 * MS;
	submitter_begin(&submitter, &load, task);
	rig_advance(&home.rig, 50 * MS);
	expect_eq(tw_job_complete(home.limiter, first.job, 0, NULL), 0);
	limited_pump(&home);
	expect_eq(submitter_end(&submitter), 0);
	limited_advance(&home, 5 * MS); /* its time in line is 10 ms */
	expect_eq(load.dones, 0);
	expect_eq(tw_job_complete(home.limiter, line.job, 0, NULL), 0);
	limited_pump(&home);
	expect_eq(tw_job_complete(home.limiter, load.job, 0, NULL), 0);
	expect_settled(&load, TW_JOB_STATUS_SUCCEEDED, 0);
	expect_eq(load.result.queued_ns, 5 * MS);
}

Test(limiter_notifications, pause_that_refuses_refuses_those_who_wait_for_room)
{
	struct load first = LOAD(1, .held = true), line = LOAD(2), load = LOAD(3);
	struct submitter submitter;
	struct tw_limiter_config config = limited_config(1);
	config.max_pending = 1;
	config.flags = TW_LIMITER_PAUSED_REFUSES;
	open_with(config);
	load_submit(&first);
	limited_pump(&home);
	load_submit(&line);
	submitter_begin(&submitter, &load, load_task(&load));
	expect_eq(tw_limiter_set_paused(home.limiter, true), 0);
	expect_eq(submitter_end(&submitter), -EBUSY);
	expect_eq(tw_limiter_close(home.limiter, TW_CLOSE_DROP, 0), -ETIMEDOUT);
	expect_eq(tw_job_complete(home.limiter, first.job, 0, NULL), 0);
}
