/*
 * Pause, close and idle of a limiter: what still runs, what is dropped, and who is notified. On a
 * clock moved by hand.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "executor/limiter/internal.h"
#include "test/support/faults.h"
#include "test/support/limiter_suite.h"
#include "test/support/misuse_text.h"

TestSuite(limiter_close, .fini = close_left);

/* ------------------------------------------------------------ pause and close */

Test(limiter_close, one_that_is_created_paused_runs_nothing_until_resume)
{
	struct load load = LOAD(1);
	struct tw_limiter_config config = limited_config(1);
	limited_open(&home, &config);
	load_submit(&load);
	limited_advance(&home, 10 * MS);
	expect_eq(load.starts, 0);
	expect_eq(tw_limiter_resume(home.limiter), 0);
	expect_eq(tw_limiter_resume(home.limiter), 0);
	limited_pump(&home);
	expect_eq(load.starts, 1);
}

Test(limiter_close, pause_lets_the_running_finish_and_starts_none)
{
	struct load loads[3];
	open_started(1);
	held(loads, 3);
	expect_eq(tw_limiter_pause(home.limiter), 0);
	complete(&loads[0], 0);
	limited_advance(&home, 5 * MS);
	expect_eq(loads[0].dones, 1);
	expect_eq(home.starts, 1);
	expect_eq(tw_limiter_pause(home.limiter), 0);
	expect_eq(tw_limiter_resume(home.limiter), 0);
	limited_pump(&home);
	expect_eq(home.starts, 2);
	complete(&loads[1], 0);
	complete(&loads[2], 0);
}

Test(limiter_close, pause_holds_back_what_the_executor_was_given_already)
{
	struct load load = LOAD(1);
	open_started(1);
	load_submit(&load);
	expect_eq(queue_executor_waiting(&home.queue), 1);
	expect_eq(tw_limiter_pause(home.limiter), 0);
	limited_pump(&home);
	expect_eq(load.starts, 0);
	expect_eq(tw_limiter_resume(home.limiter), 0);
	limited_pump(&home);
	expect_eq(load.starts, 1);
}

static int try_submit(struct load *load)
{
	struct tw_limiter_task task = load_task(load);
	return tw_limiter_submit_task(home.limiter, &task, NULL);
}

static int drained = 1;

static void *drain(void *arg)
{
	drained = tw_limiter_close(home.limiter, TW_CLOSE_DRAIN, TW_FOREVER);
	return arg;
}

Test(limiter_close, close_drops_the_line_waits_for_the_running_and_refuses_jobs)
{
	struct load loads[4];
	open_started(1);
	held(loads, 3);
	expect_eq(tw_limiter_close(home.limiter, TW_CLOSE_DROP, 0), -ETIMEDOUT); /* one runs */
	expect_settled(&loads[1], TW_JOB_STATUS_DROPPED, -ESHUTDOWN);
	expect_settled(&loads[2], TW_JOB_STATUS_DROPPED, -ESHUTDOWN);
	expect_eq(loads[1].releases, 1);
	expect_eq(limited_stats(&home).dropped, 2);
	expect_eq(loads[0].dones, 0);
	loads[3] = LOAD(3);
	expect_eq(try_submit(&loads[3]), -ESHUTDOWN);
	complete(&loads[0], 0);
	expect_settled(&loads[0], TW_JOB_STATUS_SUCCEEDED, 0);
	expect_eq(tw_limiter_close(home.limiter, TW_CLOSE_DROP, 0), 0);
	expect_eq(tw_limiter_close(home.limiter, TW_CLOSE_DRAIN, TW_FOREVER), 0); /* again */
	expect_eq(try_submit(&loads[3]), -ESHUTDOWN);
	expect_eq(limited_stats(&home).added, 3);
}

Test(limiter_close, drain_runs_what_waits_and_retries_it)
{
	struct load loads[3];
	open_started(1);
	held(loads, 2);
	loads[2] = LOAD(2, .answer = -EIO, .fails = 1);
	struct tw_limiter_task task = load_task(&loads[2]);
	task.retry = (struct tw_retry){.count = 1, .delay_ns = 5 * MS};
	load_submit_task(&loads[2], &task);
	pthread_t thread;
	expect_eq(pthread_create(&thread, NULL, drain, NULL), 0);
	for (bool closed = false; !closed; sched_yield()) {
		pthread_mutex_lock(&home.limiter->lock);
		closed = home.limiter->closed;
		pthread_mutex_unlock(&home.limiter->lock);
	}
	complete(&loads[0], 0);
	limited_pump(&home);
	complete(&loads[1], 0);
	limited_advance(&home, 10 * MS);
	expect_settled(&loads[2], TW_JOB_STATUS_SUCCEEDED, 0);
	expect_eq(loads[2].starts, 2);
	expect_eq(pthread_join(thread, NULL), 0);
	expect_eq(drained, 0);
}

Test(limiter_close, drain_drops_what_waits_when_its_timeout_has_passed)
{
	struct load loads[2];
	open_started(1);
	held(loads, 2);
	expect_eq(tw_limiter_close(home.limiter, TW_CLOSE_DRAIN, MS), -ETIMEDOUT);
	expect_settled(&loads[1], TW_JOB_STATUS_DROPPED, -ESHUTDOWN);
	complete(&loads[0], 0);
	expect_eq(tw_limiter_close(home.limiter, TW_CLOSE_DRAIN, 0), 0);
}

static void note_queued(void *arg, const struct tw_job_result *result)
{
	*(uint64_t *)arg = result->queued_ns;
}

/* On the system's clock: the drain waits by it. */
Test(limiter_close, job_that_a_drain_drops_was_queued_for_as_long_as_the_drain_waited)
{
	tw_service *service;
	tw_limiter *limiter;
	uint64_t queued_ns = 0;
	struct tw_limiter_config config = limited_config(1);
	struct tw_limiter_task task = {
	    .size = sizeof task, .fn = job_succeeds, .arg = &queued_ns, .done = note_queued};
	config.flags = TW_LIMITER_PAUSED;
	expect_eq(tw_service_create(&service, NULL), 0);
	expect_eq(tw_limiter_create(&limiter, service, &config), 0);
	expect_eq(tw_limiter_submit_task(limiter, &task, NULL), 0);
	expect_eq(tw_limiter_close(limiter, TW_CLOSE_DRAIN, 20 * MS), 0);
	expect_ge(queued_ns, 20 * MS);
	expect_eq(tw_limiter_destroy(limiter), 0);
	expect_eq(tw_service_destroy(service), 0);
}

/* ---------------------------------------------------------------------- idle */

static int idle_order[8];
static unsigned idles;
static size_t idle_n;
static struct tw_job_result idle_results[8];

static void on_idle(void *arg, const struct tw_job_result *results, size_t n)
{
	idle_order[idles++] = *(int *)arg;
	idle_n = n;
	for (size_t i = 0; i < n && i < 8; i++)
		idle_results[i] = results[i];
}

Test(limiter_close, idle_listeners_are_told_once_each_in_order)
{
	struct load loads[2];
	int numbers[] = {0, 1, 2, 3};
	open_started(1);
	held(loads, 2);
	for (int i = 0; i < 3; i++)
		expect_eq(tw_limiter_on_idle(home.limiter, on_idle, &numbers[i]), 0);
	complete(&loads[0], 0);
	expect_eq(idles, 0);
	expect_eq(tw_limiter_wait_idle(home.limiter, 0), -ETIMEDOUT);
	complete(&loads[1], -EIO);
	expect_eq(idles, 3);
	for (int i = 0; i < 3; i++)
		expect_eq(idle_order[i], i);
	expect_eq(tw_limiter_wait_idle(home.limiter, 0), 0);
	expect_eq(tw_limiter_on_idle(home.limiter, on_idle, &numbers[3]), 0); /* immediately */
	expect_eq(idles, 4);
	held(loads, 1);
	complete(&loads[0], 0);
	expect_eq(idles, 4);
}

Test(limiter_close, results_are_collected_in_the_order_of_settling)
{
	struct load loads[4];
	int number = 1;
	struct tw_limiter_config config = limited_config(3);
	config.flags = TW_LIMITER_COLLECT;
	open_with(config);
	/* idle already: nothing collected */
	expect_eq(tw_limiter_on_idle(home.limiter, on_idle, &number), 0);
	expect_eq(idles, 1);
	expect_eq(idle_n, 0);
	held(loads, 4);
	expect_eq(tw_limiter_on_idle(home.limiter, on_idle, &number), 0);
	expect_eq(tw_job_cancel(home.limiter, loads[3].job), TW_CANCELLED); /* it never runs */
	complete(&loads[2], 0);
	complete(&loads[0], -EIO);
	expect_eq(tw_job_cancel(home.limiter, loads[1].job), TW_RUNNING);
	complete(&loads[1], -ECANCELED);
	expect_eq(idles, 2);
	static const struct tw_job_result wanted[] = {
	    {.id = 4, .status = TW_JOB_STATUS_CANCELLED, .error = -ECANCELED, .attempts = 0},
	    {.id = 3, .status = TW_JOB_STATUS_SUCCEEDED, .error = 0, .attempts = 1},
	    {.id = 1, .status = TW_JOB_STATUS_FAILED, .error = -EIO, .attempts = 1},
	    {.id = 2, .status = TW_JOB_STATUS_CANCELLED, .error = -ECANCELED, .attempts = 1}};
	expect_eq(idle_n, 4);
	for (int i = 0; i < 4; i++) {
		expect_eq(idle_results[i].id, wanted[i].id);
		expect_eq(idle_results[i].status, wanted[i].status);
		expect_eq(idle_results[i].error, wanted[i].error);
		expect_eq(idle_results[i].attempts, wanted[i].attempts);
		cr_assert_eq(idle_results[i].value, i ? &loads[wanted[i].id - 1] : NULL);
	}
	idle_n = 0;
	/* a later listener gets them too */
	expect_eq(tw_limiter_on_idle(home.limiter, on_idle, &number), 0);
	expect_eq(idle_n, 4);
	expect_eq(idle_results[0].id, 4);
	held(loads, 1);
	complete(&loads[0], 0);
	expect_eq(tw_limiter_on_idle(home.limiter, on_idle, &number), 0);
	expect_eq(idle_n, 1); /* a new collection */
	expect_eq(idle_results[0].id, 5);
}

/* --------------------------------------------------- close without waiting */

static unsigned ends;

static void on_end(void *arg, const struct tw_job_result *results, size_t n)
{
	ends++;
}

static int close_inside(void *arg, struct tw_job_run *run)
{
	expect_eq(tw_limiter_close_then(run->limiter, TW_CLOSE_DRAIN, on_end, arg), 0);
	expect_eq(tw_limiter_submit(run->limiter, close_inside, arg, NULL), -ESHUTDOWN);
	return 0;
}

Test(limiter_close, drain_from_a_job_lets_the_old_run_and_refuses_the_new)
{
	struct load first = LOAD(1), second = LOAD(2, .answer = -EIO, .fails = 1),
		    third = LOAD(3, .takes_ns = 7 * MS);
	open_started(1);
	struct tw_limiter_task task = load_task(&first);
	task.fn = close_inside;
	load_submit_task(&first, &task);
	task = load_task(&second);
	task.retry = (struct tw_retry){.count = 1, .delay_ns = 3 * MS};
	load_submit_task(&second, &task);
	load_submit(&third);
	limited_advance(&home, 5 * MS);
	expect_eq(ends, 0);
	limited_advance(&home, 10 * MS);
	expect_eq(ends, 1);
	expect_settled(&first, TW_JOB_STATUS_SUCCEEDED, 0);
	expect_settled(&second, TW_JOB_STATUS_SUCCEEDED, 0);
	expect_settled(&third, TW_JOB_STATUS_SUCCEEDED, 0);
}

Test(limiter_close, drop_without_waiting_tells_when_the_running_have_ended)
{
	struct load runs = LOAD(1, .held = true), waits = LOAD(2);
	open_started(1);
	load_submit(&runs);
	load_submit(&waits);
	limited_pump(&home);
	faults_arm(0, true);
	expect_eq(tw_limiter_close_then(home.limiter, TW_CLOSE_DROP, on_end, NULL), -ENOMEM);
	expect_eq(faults_disarm(), true);
	expect_eq(waits.dones, 0); /* nothing has changed */
	expect_eq(tw_limiter_close_then(home.limiter, TW_CLOSE_DROP, on_end, NULL), 0);
	expect_settled(&waits, TW_JOB_STATUS_DROPPED, -ESHUTDOWN);
	expect_eq(ends, 0);
	complete(&runs, 0);
	expect_eq(ends, 1);
	expect_eq(tw_limiter_close_then(home.limiter, TW_CLOSE_DRAIN, on_end, NULL), 0);
	expect_eq(ends, 2); /* nothing is left */
}

/* ---------------------------------------------------------- refused for good */

/* The driver does the rest: what the executor will never take. */
Test(limiter_close, executor_that_refuses_for_good_does_not_keep_it_from_its_end)
{
	struct load load = LOAD(1), timed = LOAD(2);
	open_started(2);
	home.queue.refuse = SIZE_MAX;
	load_submit(&load);
	struct tw_limiter_task task = load_task(&timed);
	task.queue_timeout_ns = 5 * MS;
	load_submit_task(&timed, &task);
	limited_advance(&home, 10 * MS);
	expect_eq(timed.dones, 0); /* nobody has called it yet */
	expect_eq(tw_limiter_close(home.limiter, TW_CLOSE_DROP, 0), -ETIMEDOUT);
	expect_settled(&load, TW_JOB_STATUS_DROPPED, -ESHUTDOWN);
	limited_advance(&home, 2 * MS);
	expect_settled(&timed, TW_JOB_STATUS_TIMED_OUT, -ETIMEDOUT);
	expect_eq(tw_limiter_close(home.limiter, TW_CLOSE_DROP, 0), 0);
	expect_eq(tw_limiter_destroy(home.limiter), -EBUSY); /* its runners are out */
	limited_advance(&home, 2 * MS);
	expect_eq(load.starts, 0);
	expect_eq(timed.starts, 0);
}
