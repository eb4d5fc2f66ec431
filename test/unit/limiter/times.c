/* The limiter's times: retries, timeouts, cancels. On a clock moved by hand. */
#include <errno.h>

#include "test/support/limiter_suite.h"

TestSuite(limiter_times, .fini = close_left);

static void submit_with_retry(struct load *load, struct tw_retry retry)
{
	struct tw_limiter_task task = load_task(load);
	task.retry = retry;
	load_submit_task(load, &task);
}

/* ------------------------------------------------------------------- retries */

Test(limiter_times, retried_after_delays_that_grow_to_a_cap)
{
	struct load load = LOAD(1, .answer = -EIO, .fails = 5);
	open_started(1);
	submit_with_retry(
	    &load, (struct tw_retry){
		       .count = 5, .delay_ns = 10 * MS, .factor_x100 = 200, .cap_ns = 50 * MS});
	limited_advance(&home, 300 * MS);
	static const uint64_t starts_ms[] = {0, 10, 30, 70, 120, 170};
	expect_eq(load.starts, 6);
	for (int i = 0; i < 6; i++)
		expect_eq(load.started_ns[i], starts_ms[i] * MS);
	expect_settled(&load, TW_JOB_STATUS_SUCCEEDED, 0);
	expect_eq(load.result.attempts, 6);
	expect_eq(limited_stats(&home).retried, 5);
	expect_eq(limited_stats(&home).succeeded, 1);
}

Test(limiter_times, no_permit_is_held_while_waiting_for_a_retry)
{
	struct load load = LOAD(1, .answer = -EIO, .fails = 1), other = LOAD(2, .takes_ns = 5 * MS);
	open_started(1);
	submit_with_retry(&load, (struct tw_retry){.count = 1, .delay_ns = 20 * MS});
	load_submit(&other);
	limited_pump(&home);
	expect_eq(tw_job_state(home.limiter, load.job), TW_JOB_STATE_RETRYING);
	expect_eq(limited_stats(&home).retrying, 1);
	expect_eq(other.started_ns[0], 0);
	expect_eq(other.starts, 1);
	limited_advance(&home, 10 * MS);
	expect_eq(other.dones, 1);
	expect_eq(limited_stats(&home).running, 0);
	expect_eq(limited_stats(&home).pending, 1);
	limited_advance(&home, 20 * MS);
	expect_eq(load.started_ns[1], 20 * MS);
}

Test(limiter_times, no_retry_begins_beyond_the_total_deadline)
{
	struct load load = LOAD(1, .answer = -EIO);
	open_started(1);
	submit_with_retry(
	    &load, (struct tw_retry){.count = 100, .delay_ns = 10 * MS, .deadline_ns = 35 * MS});
	limited_advance(&home, 100 * MS);
	expect_eq(load.starts, 4); /* 0, 10, 20, 30 */
	expect_settled(&load, TW_JOB_STATUS_FAILED, -EIO);
	expect_eq(load.done_ns, 30 * MS);
}

/* Its delay has passed in time, but no permit is free until its deadline is over. */
Test(limiter_times, retry_that_is_in_line_at_the_deadline_does_not_start)
{
	struct load failed = LOAD(1, .answer = -EIO), late = LOAD(2, .held = true),
		    filler = LOAD(3, .held = true);
	struct load *loads[] = {&failed, &late};
	open_started(2);
	for (int i = 0; i < 2; i++) {
		struct tw_limiter_task task = load_task(loads[i]);
		task.attempt_timeout_ns = 5 * MS;
		task.retry =
		    (struct tw_retry){.count = 9, .delay_ns = 10 * MS, .deadline_ns = 25 * MS};
		load_submit_task(loads[i], &task);
		limited_pump(&home);
	}
	limited_advance(&home, 6 * MS);
	expect_eq(tw_limiter_set_max_concurrency(home.limiter, 1), 0);
	expect_eq(tw_job_complete(home.limiter, late.job, 0, NULL), TW_JOB_LATE); /* tried again */
	load_submit(&filler);
	limited_advance(&home, 19 * MS);
	for (int i = 0; i < 2; i++)
		expect_eq(tw_job_state(home.limiter, loads[i]->job), TW_JOB_STATE_QUEUED);
	limited_advance(&home, 1 * MS);
	expect_settled(&failed, TW_JOB_STATUS_FAILED, -EIO);
	expect_settled(&late, TW_JOB_STATUS_TIMED_OUT, -ETIMEDOUT);
	expect_eq(failed.done_ns, 26 * MS);
	complete(&filler, 0);
	limited_advance(&home, 50 * MS);
	expect_eq(failed.starts + late.starts, 2);
}

/* The clock has gone beyond the deadline, and the driver has not looked yet. */
Test(limiter_times, retry_whose_turn_comes_after_the_deadline_does_not_start)
{
	struct load load = LOAD(1, .answer = -EIO), filler = LOAD(2, .held = true);
	open_started(1);
	submit_with_retry(
	    &load, (struct tw_retry){.count = 9, .delay_ns = 10 * MS, .deadline_ns = 25 * MS});
	load_submit(&filler);
	limited_advance(&home, 20 * MS);
	tw_clock_manual_set(home.rig.clock, rig_now(&home.rig) + 20 * MS);
	complete(&filler, 0);
	expect_settled(&load, TW_JOB_STATUS_FAILED, -EIO);
	expect_eq(load.starts, 1);
}

/* The delay after the next one would be longer than the clock has run, and the timeout to come. */
Test(limiter_times, retry_is_waited_for_though_the_one_after_it_could_not_be)
{
	for (int total = 0; total < 2; total++) {
		struct load load = LOAD(1, .answer = -EIO);
		open_started(1);
		struct tw_limiter_task task = load_task(&load);
		task.retry =
		    (struct tw_retry){.count = 9, .delay_ns = 2 * SECOND, .factor_x100 = 100000};
		*(total ? &task.timeout_ns : &task.retry.deadline_ns) = 500 * SECOND;
		load_submit_task(&load, &task);
		limited_advance(&home, 3 * SECOND);
		expect_eq(load.starts, 2);
		expect_eq(load.started_ns[1], 2 * SECOND);
		expect_settled(&load, TW_JOB_STATUS_FAILED, -EIO);
		close_all();
	}
}

Test(limiter_times, stop_drops_those_that_wait_for_a_retry_and_no_more_are_made)
{
	struct load load = LOAD(1, .answer = -EIO), running = LOAD(2, .held = true);
	open_started(2);
	submit_with_retry(&load, (struct tw_retry){.count = 1, .delay_ns = 20 * MS});
	submit_with_retry(&running, (struct tw_retry){.count = 9, .delay_ns = 20 * MS});
	limited_pump(&home);
	tw_limiter_close(home.limiter, TW_CLOSE_DROP, 0);
	expect_settled(&load, TW_JOB_STATUS_DROPPED, -ESHUTDOWN);
	expect_eq(load.result.attempts, 1);
	complete(&running, -EIO);
	expect_settled(&running, TW_JOB_STATUS_FAILED, -EIO);
	limited_advance(&home, 50 * MS);
	expect_eq(load.starts, 1);
}

Test(limiter_times, pause_holds_back_retries)
{
	struct load load = LOAD(1, .answer = -EIO, .fails = 1);
	open_started(1);
	submit_with_retry(&load, (struct tw_retry){.count = 1, .delay_ns = 5 * MS});
	limited_pump(&home);
	tw_limiter_pause(home.limiter);
	limited_advance(&home, 20 * MS);
	expect_eq(load.starts, 1);
	expect_eq(tw_job_state(home.limiter, load.job), TW_JOB_STATE_QUEUED);
	tw_limiter_resume(home.limiter);
	limited_pump(&home);
	expect_settled(&load, TW_JOB_STATUS_SUCCEEDED, 0);
	expect_eq(load.result.queued_ns, 15 * MS);
}

/* ------------------------------------------------------------------- cancel */

Test(limiter_times, cancelled_in_line_settles_at_once)
{
	struct load first = LOAD(1, .held = true), second = LOAD(2);
	open_started(1);
	load_submit(&first);
	load_submit(&second);
	limited_pump(&home);
	expect_eq(tw_job_state(home.limiter, second.job), TW_JOB_STATE_QUEUED);
	expect_eq(tw_job_cancel(home.limiter, second.job), TW_CANCELLED);
	expect_settled(&second, TW_JOB_STATUS_CANCELLED, -ECANCELED);
	expect_eq(second.releases, 1);
	expect_eq(second.stops, 0);
	expect_eq(tw_job_cancel(home.limiter, second.job), TW_GONE);
	expect_eq(tw_job_state(home.limiter, second.job), TW_JOB_STATE_GONE);
	complete(&first, 0);
	expect_eq(second.starts, 0);
}

Test(limiter_times, cancelled_while_waiting_for_a_retry_settles_at_once)
{
	struct load load = LOAD(1, .answer = -EIO);
	open_started(1);
	submit_with_retry(&load, (struct tw_retry){.count = 3, .delay_ns = 5 * MS});
	limited_pump(&home);
	expect_eq(tw_job_cancel(home.limiter, load.job), TW_CANCELLED);
	expect_settled(&load, TW_JOB_STATUS_CANCELLED, -ECANCELED);
	expect_eq(load.result.attempts, 1);
	limited_advance(&home, 20 * MS);
	expect_eq(load.starts, 1);
}

Test(limiter_times, running_one_is_told_and_settles_when_it_ends)
{
	struct load obeys = LOAD(1, .held = true), insists = LOAD(2, .held = true);
	open_started(2);
	submit_with_retry(&obeys, (struct tw_retry){.count = 3});
	load_submit(&insists);
	limited_pump(&home);
	expect_eq(tw_job_is_cancelled(home.limiter, obeys.job), false);
	expect_eq(tw_job_cancel(home.limiter, obeys.job), TW_RUNNING);
	expect_eq(obeys.stops, 1);
	expect_eq(obeys.why, TW_JOB_STATUS_CANCELLED);
	expect_eq(obeys.dones, 0);
	expect_eq(tw_job_is_cancelled(home.limiter, obeys.job), true);
	expect_eq(tw_job_is_cancelled(home.limiter, obeys.attempt), true);
	expect_eq(tw_job_cancel(home.limiter, obeys.job), TW_RUNNING);
	expect_eq(obeys.stops, 1); /* once */
	complete(&obeys, -EINTR);
	expect_settled(&obeys, TW_JOB_STATUS_CANCELLED, -EINTR); /* and not tried again */
	expect_eq(tw_job_cancel(home.limiter, insists.job), TW_RUNNING);
	complete(&insists, 0);
	expect_settled(&insists, TW_JOB_STATUS_SUCCEEDED, 0);
	expect_eq(limited_stats(&home).cancelled, 1);
}

static tw_job ending;

static void complete_in_stop(void *arg, tw_job job, enum tw_job_status why)
{
	struct load *load = arg;
	load->stops++;
	load->why = why;
	tw_job_complete(home.limiter, ending, -EINTR, NULL);
	load->fails = load->dones; /* 0: done comes after this has returned */
}

Test(limiter_times, attempt_that_ends_inside_of_its_stop_settles_after_it)
{
	struct load load = LOAD(1, .held = true, .fails = 7);
	open_started(1);
	struct tw_limiter_task task = load_task(&load);
	task.stop = complete_in_stop;
	load_submit_task(&load, &task);
	limited_pump(&home);
	ending = load.attempt;
	expect_eq(tw_job_cancel(home.limiter, load.job), TW_RUNNING);
	expect_eq(load.stops, 1);
	expect_eq(load.fails, 0);
	expect_settled(&load, TW_JOB_STATUS_CANCELLED, -EINTR);
	expect_eq(load.releases, 1);
}

/* ------------------------------------------------------------------ timeouts */

Test(limiter_times, timed_out_in_line_settles_at_once)
{
	struct load first = LOAD(1, .held = true), second = LOAD(2);
	open_started(1);
	load_submit(&first);
	limited_pump(&home);
	struct tw_limiter_task task = load_task(&second);
	task.queue_timeout_ns = 10 * MS;
	load_submit_task(&second, &task);
	limited_advance(&home, 9 * MS);
	expect_eq(second.dones, 0);
	limited_advance(&home, 1 * MS);
	expect_settled(&second, TW_JOB_STATUS_TIMED_OUT, -ETIMEDOUT);
	expect_eq(second.done_ns, 10 * MS);
	expect_eq(second.releases, 1);
	expect_eq(limited_stats(&home).timed_out, 1);
	complete(&first, 0);
	expect_eq(second.starts, 0);
}

Test(limiter_times, queue_timeout_does_not_count_the_run)
{
	struct load load = LOAD(1, .takes_ns = 50 * MS);
	open_started(1);
	struct tw_limiter_task task = load_task(&load);
	task.queue_timeout_ns = 10 * MS;
	load_submit_task(&load, &task);
	limited_advance(&home, 100 * MS);
	expect_settled(&load, TW_JOB_STATUS_SUCCEEDED, 0);
	expect_eq(load.stops, 0);
}

Test(limiter_times, attempt_past_its_time_settles_at_once_and_keeps_its_permit_to_its_end)
{
	struct load slow = LOAD(1, .held = true), next = LOAD(2);
	open_started(1);
	struct tw_limiter_task task = load_task(&slow);
	task.attempt_timeout_ns = 10 * MS;
	load_submit_task(&slow, &task);
	load_submit(&next);
	limited_advance(&home, 10 * MS);
	expect_settled(&slow, TW_JOB_STATUS_TIMED_OUT, -ETIMEDOUT);
	expect_eq(slow.done_ns, 10 * MS);
	expect_eq(slow.result.run_ns, 10 * MS);
	expect_eq(slow.stops, 1);
	expect_eq(slow.why, TW_JOB_STATUS_TIMED_OUT);
	expect_eq(slow.releases, 0); /* it still runs */
	expect_eq(tw_job_state(home.limiter, slow.job), TW_JOB_STATE_SETTLED);
	expect_eq(tw_job_cancel(home.limiter, slow.job), TW_GONE);
	expect_eq(tw_job_is_cancelled(home.limiter, slow.attempt), true);
	limited_advance(&home, 10 * MS);
	expect_eq(next.starts, 0);
	expect_eq(limited_stats(&home).running, 1);
	expect_eq(limited_stats(&home).late, 1);
	expect_eq(tw_limiter_wait_idle(home.limiter, 0), -ETIMEDOUT);
	expect_eq(tw_job_complete(home.limiter, slow.attempt, 0, NULL), TW_JOB_LATE);
	expect_eq(slow.releases, 1);
	expect_eq(tw_job_complete(home.limiter, slow.attempt, 0, NULL), -EALREADY);
	limited_pump(&home);
	expect_eq(next.dones, 1);
	expect_eq(slow.dones, 1);
}

Test(limiter_times, attempt_past_its_time_is_tried_again_when_it_has_ended)
{
	struct load load = LOAD(1, .held = true);
	open_started(1);
	struct tw_limiter_task task = load_task(&load);
	task.attempt_timeout_ns = 10 * MS;
	task.retry = (struct tw_retry){.count = 1, .delay_ns = 5 * MS};
	load_submit_task(&load, &task);
	limited_advance(&home, 12 * MS);
	expect_eq(load.stops, 1);
	expect_eq(load.dones, 0);
	expect_eq(load.starts, 1);
	expect_eq(tw_job_complete(home.limiter, load.attempt, 0, &load), TW_JOB_LATE);
	limited_advance(&home, 5 * MS);
	expect_eq(load.starts, 2);
	expect_eq(load.started_ns[1], 17 * MS);
	limited_advance(&home, 10 * MS);
	expect_settled(&load, TW_JOB_STATUS_TIMED_OUT, -ETIMEDOUT);
	expect_eq(load.stops, 2);
	expect_eq(load.done_ns, 27 * MS);
	expect_eq(tw_job_complete(home.limiter, load.attempt, 0, NULL), TW_JOB_LATE);
}

Test(limiter_times, total_timeout_holds_in_line_in_a_run_and_in_a_wait)
{
	struct load running = LOAD(1, .held = true), waiting = LOAD(2),
		    retrying = LOAD(3, .answer = -EIO);
	open_started(2);
	struct load *loads[] = {&retrying, &running, &waiting};
	struct load filler = LOAD(4, .held = true);
	for (int i = 0; i < 3; i++) {
		struct tw_limiter_task task = load_task(loads[i]);
		task.timeout_ns = 10 * MS;
		if (i == 0)
			task.retry = (struct tw_retry){.count = 9, .delay_ns = 8 * MS};
		load_submit_task(loads[i], &task);
		if (i == 1)
			load_submit(&filler);
		limited_pump(&home);
	}
	expect_eq(retrying.starts, 1);
	expect_eq(running.starts, 1);
	expect_eq(waiting.starts, 0);
	limited_advance(&home, 9 * MS); /* the retry is in line */
	expect_eq(retrying.dones + running.dones + waiting.dones, 0);
	limited_advance(&home, 1 * MS);
	for (int i = 0; i < 3; i++) {
		expect_settled(loads[i], TW_JOB_STATUS_TIMED_OUT, -ETIMEDOUT);
		expect_eq(loads[i]->done_ns, 10 * MS);
	}
	expect_eq(tw_job_complete(home.limiter, running.attempt, 0, NULL), TW_JOB_LATE);
	complete(&filler, 0);
}

Test(limiter_times, retry_that_cannot_begin_in_time_is_not_waited_for)
{
	struct load load = LOAD(1, .answer = -EIO);
	open_started(1);
	struct tw_limiter_task task = load_task(&load);
	task.timeout_ns = 10 * MS;
	task.retry = (struct tw_retry){.count = 9, .delay_ns = 20 * MS};
	load_submit_task(&load, &task);
	limited_pump(&home);
	expect_settled(&load, TW_JOB_STATUS_FAILED, -EIO);
}
