/*
 * Jobs that come in without the lock: nobody sees a difference. On a clock moved by hand.
 */
#include <errno.h>

#include "executor/limiter/internal.h"
#include "test/support/limiter_script.h"
#include "test/support/limiter_suite.h"
#include "mpsc/base/clock.h"

TestSuite(limiter_inbox, .fini = close_left, .timeout = 60);

static struct load first;

static bool is_in_inbox(void)
{
	return tw_load_relaxed(&home.limiter->object.word) > TW__WORD_BITS;
}

static int plain(void *arg, struct tw_job_run *run)
{
	struct load *load = arg;
	load->starts++;
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

static void say_inbox(const struct words *words)
{
	bool is_in = tw_load_relaxed(&script_home.limiter->object.word) > TW__WORD_BITS;
	say("%s", is_in ? "in inbox" : "empty");
}

static const struct verb verbs[] = {{"inbox", say_inbox}, {NULL, NULL}};

static const struct script plain_ones[] = {
    {"all who ask know of a job that came without the lock",
     {{"submit 0 held", "start 0"},
      {"submit 1 bare; inbox; stats pending added; inbox; cancel 1; state 1",
       "in inbox, pending=1, added=2, empty, CANCELLED, GONE"},
      {"submit 1 bare; inbox; state 1; inbox; cancel 1", "in inbox, QUEUED, empty, CANCELLED"},
      {"submit 1 bare; inbox; wait 1; inbox; cancel 1", "in inbox, ETIMEDOUT, empty, CANCELLED"},
      {"submit 1 bare; inbox; destroy; inbox; cancel 1", "in inbox, EBUSY, empty, CANCELLED"},
      {"submit 1 bare; inbox; wait_idle; inbox; cancel 1", "in inbox, ETIMEDOUT, empty, CANCELLED"},
      {"submit 1 bare; inbox; cancel 1; inbox; state 1", "in inbox, CANCELLED, empty, GONE"},
      {"end 0", "0 ok"}}},
    {"numbers and turns are in the order of submits",
     {{"submit 0 held", "start 0"},
      {"submit 1..3 bare; inbox; submit 9 bare priority=1; inbox; submit 4 5 bare",
       "in inbox, empty"},
      {"end 0", "0 ok, start 9, start 1, start 2, start 3, start 4, start 5"},
      {"result 1 id; result 2 id; result 3 id; result 9 id; result 4 id; result 5 id",
       "id=2, id=3, id=4, id=5, id=6, id=7"}}},
    {"time in line begins with the submit",
     {{"submit 0 held", "start 0"},
      {"submit 1 bare; drive 30; inbox", "@30 in inbox"},
      {"end 0", "0 ok, start 1"},
      {"stats queue_mean_ns", "queue_mean_ns=15000000"}}}, /* of two */
    {"used while a permit is free, and while the limiter is paused",
     {{"submit 0 bare; inbox; -", "in inbox, -, start 0"},
      {"pause; submit 1 bare; inbox; -; state 1", "in inbox, -, QUEUED"},
      {"resume", "start 1"},
      {"submit 2 bare; inbox; submit 3 bare; inbox; -", "in inbox, in inbox, -, start 2, start 3"},
      {"close drop; submit 4 bare; inbox", "ESHUTDOWN, empty"}}},
    {"a drop drops what is in it",
     {{"submit 0 bare; submit 1 bare; inbox; close drop; stats dropped; inbox",
       "in inbox, dropped=2, empty"}}},
    {"go before lower ones in line",
     {{"submit 0 bare {submit 1 2 bare priority=-1; submit 3..8 bare; inbox}",
       "start 0, in inbox, start 3, start 4, start 5, start 6, start 7, start 8, start 1, start "
       "2"}}},
    {"go after higher ones in line",
     {{"submit 0 bare {submit 1 2 bare priority=1; submit 3..8 bare; inbox}",
       "start 0, in inbox, start 1, start 2, start 3, start 4, start 5, start 6, start 7, start "
       "8"}}},
    {"used with a rate",
     {{"given rate=5 interval=1; submit 0 held", "start 0"},
      {"submit 1 bare; inbox", "in inbox"},
      {"end 0", "0 ok, start 1"}}},
};

Test(limiter_inbox, plain_ones)
{
	PLAY(&limiter_stage, verbs, plain_ones);
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

/* ----------------------------------------- while somebody else has the lock */

/* All permits are out, so it waits for no lock. */
static void submit_beside(void *arg)
{
	submit_plain(arg);
	expect_eq(is_in_inbox(), true);
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
	expect_eq(limited_stats(&home).pending, 0);
}
