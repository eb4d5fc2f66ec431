/*
 * Jobs that come in without the lock, while all permits are out: nobody sees a difference. On a
 * clock moved by hand.
 */
#include <errno.h>

#include "executor/limiter/internal.h"
#include "test/support/faults.h"
#include "test/support/limiter_suite.h"
#include "mpsc/clock.h"
#include "executor/limiter/inbox.h"

TestSuite(limiter_inbox, .fini = close_left, .timeout = 60);

static struct load first;

static bool is_in_inbox(void)
{
	return tw_load_relaxed(&home.limiter->inbox) > TW__INBOX_OPEN;
}

static int plain(void *arg, struct tw_job_run *run)
{
	struct load *load = arg;
	load->starts++;
	if (home.starts < 64)
		home.started[home.starts++] = load->number;
	load->result.id = run->id;
	return 0;
}

/* Without the lock, if that is possible. */
static void submit_plain(struct load *load)
{
	struct tw_limiter_task task = {.size = sizeof task, .fn = plain, .arg = load};
	load->home = &home;
	expect_eq(tw_limiter_submit_task(home.limiter, &task, &load->job), 0);
	expect_ne(load->job.id, 0);
}

static void open_and_fill(struct tw_limiter_config config)
{
	open_with(config);
	first = LOAD(0, .held = true);
	load_submit(&first);
	limited_pump(&home);
	expect_eq(first.starts, 1);
}

static void complete_first(void)
{
	expect_eq(tw_job_complete(home.limiter, first.attempt, 0, NULL), 0);
	limited_pump(&home);
}

Test(limiter_inbox, all_who_ask_know_of_a_job_that_came_without_the_lock)
{
	struct load load = LOAD(1);
	open_and_fill(limited_config(1));
	for (int what = 0; what < 9; what++) {
		submit_plain(&load);
		expect_eq(is_in_inbox(), true);
		switch (what) {
		case 0:
			expect_eq(limited_stats(&home).pending, 1);
			expect_eq(limited_stats(&home).added, 2);
			break;
		case 1:
			expect_eq(tw_job_state(home.limiter, load.job), TW_JOB_STATE_QUEUED);
			break;
		case 2:
			expect_eq(tw_job_is_cancelled(home.limiter, load.job), false);
			break;
		case 3:
			expect_eq(tw_job_wait(home.limiter, load.job, 0, NULL), -ETIMEDOUT);
			break;
		case 4:
			expect_eq(tw_limiter_destroy(home.limiter), -EBUSY);
			break;
		case 5:
			expect_eq(tw_job_forget(home.limiter, load.job), -EINVAL);
			break;
		case 6:
			expect_eq(tw_limiter_wait_idle(home.limiter, 0), -ETIMEDOUT);
			break;
		default:
			break;
		}
		expect_eq(is_in_inbox(), what > 6);
		expect_eq(tw_job_cancel(home.limiter, load.job), TW_CANCELLED);
		expect_eq(tw_job_state(home.limiter, load.job), TW_JOB_STATE_GONE);
	}
	complete_first();
}

Test(limiter_inbox, numbers_and_turns_are_in_the_order_of_submits)
{
	struct load loads[6], urgent = LOAD(9);
	open_and_fill(limited_config(1));
	for (int i = 1; i < 6; i++) {
		loads[i] = LOAD(i);
		submit_plain(&loads[i]);
		if (i == 3) {
			expect_eq(is_in_inbox(), true);
			struct tw_limiter_task task = {
			    .size = sizeof task, .fn = plain, .arg = &urgent, .priority = 1};
			expect_eq(tw_limiter_submit_task(home.limiter, &task, NULL), 0);
			expect_eq(is_in_inbox(), false);
		}
	}
	complete_first();
	expect_started_in_order(&home, 7, (int[]){0, 9, 1, 2, 3, 4, 5});
	static const uint64_t ids[] = {0, 2, 3, 4, 6, 7};
	for (int i = 1; i < 6; i++)
		expect_eq(loads[i].result.id, ids[i]);
	expect_eq(urgent.result.id, 5);
}

Test(limiter_inbox, time_in_line_begins_with_the_submit)
{
	struct load load = LOAD(1);
	open_and_fill(limited_config(1));
	submit_plain(&load);
	rig_advance(&home.rig, 30 * MS);
	expect_eq(is_in_inbox(), true);
	complete_first();
	expect_eq(load.starts, 1);
	expect_eq(limited_stats(&home).queue_mean_ns, 15 * MS); /* of two */
}

Test(limiter_inbox, closed_while_paused_or_stopped_or_a_permit_is_free)
{
	struct load load = LOAD(1);
	open_and_fill(limited_config(1));
	submit_plain(&load);
	expect_eq(tw_limiter_pause(home.limiter), 0);
	expect_eq(tw_load_relaxed(&home.limiter->inbox), 0);
	complete_first();
	expect_eq(load.starts, 0);
	expect_eq(tw_limiter_resume(home.limiter), 0);
	limited_pump(&home);
	expect_eq(load.starts, 1);
	expect_eq(tw_load_relaxed(&home.limiter->inbox), 0);
	submit_plain(&load); /* a runner is on its way */
	expect_eq(tw_load_relaxed(&home.limiter->inbox), TW__INBOX_OPEN);
	submit_plain(&load);
	expect_eq(is_in_inbox(), true);
	expect_eq(tw_limiter_close(home.limiter, TW_CLOSE_DROP, 0), 0);
	expect_eq(limited_stats(&home).dropped, 2);
	expect_eq(tw_load_relaxed(&home.limiter->inbox), 0);
	limited_pump(&home);
	expect_eq(load.starts, 1);
}

static unsigned idles;

static void on_idle(void *arg, const struct tw_job_result *results, size_t n)
{
	idles++;
}

static struct load second, third;

/*
 * The only other job is cancelled, and one comes for whose sake nobody takes the lock: a runner is
 * on its way.
 */
static void change_the_line(void *arg, const struct tw_job_result *result)
{
	submit_plain(&second);
	expect_eq(tw_job_cancel(home.limiter, second.job), TW_CANCELLED);
	submit_plain(&third);
	expect_eq(is_in_inbox(), true);
}

Test(limiter_inbox, not_idle_while_one_is_there)
{
	struct load load = LOAD(1);
	struct tw_limiter_config config = limited_config(1);
	third = LOAD(3);
	open_with(config);
	struct tw_limiter_task task = load_task(&load);
	task.done = change_the_line;
	load_submit_task(&load, &task);
	expect_eq(tw_limiter_on_idle(home.limiter, on_idle, NULL), 0);
	expect_eq(queue_executor_waiting(&home.queue), 1);
	expect_eq(queue_executor_run_next(&home.queue), 1);
	expect_eq(idles, third.starts);
	limited_pump(&home);
	expect_eq(third.starts, 1);
	expect_eq(idles, 1);
}

Test(limiter_inbox, used_by_plain_jobs_of_simple_limiters_only)
{
	struct load load = LOAD(1);
	open_and_fill(limited_config(1));
	struct tw_limiter_task task = load_task(&load); /* with callbacks of its own */
	load_submit_task(&load, &task);
	expect_eq(is_in_inbox(), false);
	struct tw_limiter_task low = {
	    .size = sizeof low, .fn = plain, .arg = &load, .priority = -1};
	expect_eq(tw_limiter_submit_task(home.limiter, &low, NULL), 0);
	expect_eq(is_in_inbox(), false);
	complete_first();
	close_all();
	struct tw_limiter_config configs[4];
	for (int i = 0; i < 4; i++)
		configs[i] = limited_config(1);
	configs[0].max_pending = 1000;
	configs[1].flags = TW_LIMITER_COLLECT;
	configs[2].flags = TW_LIMITER_PAUSED_REFUSES;
	configs[3].rate_starts = 5;
	configs[3].rate_interval_ns = MS;
	for (int i = 0; i < 4; i++) {
		open_and_fill(configs[i]);
		submit_plain(&load);
		expect_eq(tw_load_relaxed(&home.limiter->inbox), 0);
		complete_first();
		close_all();
	}
}

static struct load inner[8];

/* Once. */
static int submit_inside(void *arg, struct tw_job_run *run)
{
	struct load *load = arg;
	for (int i = 0; i < 2; i++) {
		inner[i] = LOAD(i + 1);
		struct tw_limiter_task task = {
		    .size = sizeof task, .fn = plain, .arg = &inner[i], .priority = load->answer};
		expect_eq(tw_limiter_submit_task(home.limiter, &task, NULL), 0);
	}
	for (int i = 2; i < 8; i++) {
		inner[i] = LOAD(i + 1);
		submit_plain(&inner[i]);
	}
	expect_eq(is_in_inbox(), true);
	return 0;
}

static void open_and_submit_inside(struct tw_limiter_config config, int priority)
{
	static struct load load;
	open_with(config);
	load = LOAD(0, .answer = priority);
	expect_eq(tw_limiter_submit(home.limiter, submit_inside, &load, NULL), 0);
	limited_pump(&home);
}

Test(limiter_inbox, go_before_lower_ones_in_line_and_after_higher_ones)
{
	open_and_submit_inside(limited_config(1), -1);
	expect_started_in_order(&home, 8, (int[]){3, 4, 5, 6, 7, 8, 1, 2});
	close_all();
	open_and_submit_inside(limited_config(1), 1);
	expect_started_in_order(&home, 8, (int[]){1, 2, 3, 4, 5, 6, 7, 8});
}

/* ----------------------------------------- while somebody else has the lock */

/* All permits are out, so it waits for no lock. */
static void submit_beside(void *arg)
{
	submit_plain(arg);
	expect_eq(is_in_inbox(), true);
}

static struct load held_plain(int number, struct tw_limiter_task *task)
{
	struct load load = LOAD(number, .held = true);
	*task = load_task(&load);
	task->release = NULL;
	task->stop = NULL;
	return load;
}

Test(limiter_inbox, growth_of_the_limit_has_a_runner_for_one_that_comes_meanwhile)
{
	struct load late = LOAD(2), waiting;
	struct tw_limiter_task task;
	open_and_fill(limited_config(1));
	waiting = held_plain(1, &task);
	task.arg = &waiting;
	load_submit_task(&waiting, &task);
	expect_eq(is_in_inbox(), true);
	/* as memory is asked for a runner for the one that waits */
	faults_call_at(0, submit_beside, &late);
	expect_eq(tw_limiter_set_max_concurrency(home.limiter, 3), 0);
	expect_eq(faults_disarm(), true);
	expect_eq(home.limiter->permits.runners, 3);
	expect_eq(tw_load_relaxed(&home.limiter->inbox), TW__INBOX_OPEN);
	expect_eq(queue_executor_waiting(&home.queue), 2);
	limited_pump(&home);
	expect_eq(late.starts, 1);
	complete_first();
	expect_eq(tw_job_complete(home.limiter, waiting.attempt, 0, NULL), 0);
}

/* A clock whose next reading is a moment in the middle of a call. */
static struct tw__clock_ops hooked;
static const struct tw__clock_ops *whole;
static struct load *at_next_reading;

static uint64_t read_hooked(const tw_clock *clock)
{
	struct load *load = at_next_reading;
	at_next_reading = NULL;
	if (load)
		submit_beside(load);
	return whole->now(clock);
}

static void hook_clock(struct load *load)
{
	whole = home.rig.clock->ops;
	hooked = *whole;
	hooked.now = read_hooked;
	home.rig.clock->ops = &hooked;
	at_next_reading = load;
}

Test(limiter_inbox, one_that_comes_while_the_last_permit_is_given_back_is_run)
{
	struct load late = LOAD(1);
	open_and_fill(limited_config(1));
	hook_clock(&late); /* the lock is held, the inbox was looked at */
	expect_eq(tw_job_complete(home.limiter, first.attempt, 0, NULL), 0);
	home.rig.clock->ops = whole;
	expect_eq(at_next_reading == NULL, true);
	limited_pump(&home);
	expect_eq(late.starts, 1);
	expect_eq(tw_load_relaxed(&home.limiter->inbox), 0);
	expect_eq(limited_stats(&home).pending, 0);
}
