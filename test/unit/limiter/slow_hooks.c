/*
 * What passes while a callback of the limiter runs: a wait for room, a timeout. On a clock
 * moved by hand.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "executor/limiter/internal.h"
#include "test/support/limiter_suite.h"

TestSuite(limiter_slow_hooks, .timeout = 60);

static void open_with(struct tw_limiter_config config)
{
	limited_open(&home, &config);
	expect_eq(tw_limiter_resume(home.limiter), 0);
}

/* ---------------------------------------------------------------------- room */

static pthread_t waiter;
static struct load waiting;

static void *submit_and_wait(void *arg)
{
	struct tw_limiter_task task = load_task(arg);
	task.wait_ns = TW_FOREVER;
	load_submit_task(arg, &task);
	return NULL;
}

static bool somebody_waits_for_room(void)
{
	pthread_mutex_lock(&home.limiter->lock);
	bool waits = home.limiter->ends.room.waiters;
	pthread_mutex_unlock(&home.limiter->lock);
	return waits;
}

static void begin_to_wait(void *arg, tw_job job, uint64_t id, uint32_t attempt)
{
	(void)arg, (void)job, (void)attempt;
	if (id != 1)
		return;
	expect_eq(pthread_create(&waiter, NULL, submit_and_wait, &waiting), 0);
	while (!somebody_waits_for_room())
		sched_yield();
}

/* When it began to wait, nobody knew when the token would be back. */
Test(limiter_slow_hooks, who_waits_for_room_during_started_is_woken_by_the_token)
{
	struct load first = LOAD(1);
	struct tw_limiter_config config = limited_config(2);
	config.flags = TW_LIMITER_NO_QUEUE;
	config.rate_starts = 1;
	config.rate_interval_ns = 10 * MS;
	limited_hook(&config, (struct limited_hooks){.started = begin_to_wait});
	waiting = LOAD(2);
	open_with(config);
	load_submit(&first);
	limited_pump(&home);
	rig_advance(&home.rig, 10 * MS);
	expect_eq(pthread_join(waiter, NULL), 0);
	limited_pump(&home);
	expect_settled(&waiting, TW_JOB_STATUS_SUCCEEDED, 0);
	expect_eq(waiting.started_ns[0], 10 * MS);
	close_all();
}

/* ------------------------------------------------------------------- timeouts */

static int settled_hooks;

static void take_long(void *arg, tw_job job, uint64_t id, uint32_t attempt)
{
	(void)arg, (void)job, (void)id, (void)attempt;
	limited_advance(&home, 20 * MS);
	expect_eq(settled_hooks, 0);
}

static void count_settled(void *arg, tw_job job, const struct tw_job_result *result)
{
	(void)arg, (void)job, (void)result;
	settled_hooks++;
}

Test(limiter_slow_hooks, settled_is_not_called_before_started_has_returned)
{
	for (int total = 0; total < 2; total++) {
		struct load load = LOAD(1, .held = true);
		struct tw_limiter_config config = limited_config(1);
		limited_hook(&config, (struct limited_hooks){.started = take_long,
							     .settled = count_settled});
		settled_hooks = 0;
		open_with(config);
		struct tw_limiter_task task = load_task(&load);
		*(total ? &task.timeout_ns : &task.attempt_timeout_ns) = 10 * MS;
		load_submit_task(&load, &task);
		limited_pump(&home);
		expect_eq(load.starts, 1);
		limited_advance(&home,
				MS); /* its time has passed: the driver looks in the next tick */
		expect_eq(settled_hooks, 1);
		expect_eq(load.stops, 1);
		expect_settled(&load, TW_JOB_STATUS_TIMED_OUT, -ETIMEDOUT);
		expect_eq(tw_job_complete(home.limiter, load.attempt, 0, NULL), TW_JOB_LATE);
		close_all();
	}
}

static bool allow_late(void *arg, tw_job job, int error, uint32_t attempt, int64_t *delay_ns)
{
	(void)arg, (void)job, (void)error, (void)attempt, (void)delay_ns;
	limited_advance(&home, 20 * MS);
	return true;
}

Test(limiter_slow_hooks, job_whose_time_passes_while_its_predicate_runs_is_timed_out)
{
	struct load load = LOAD(1, .answer = -EIO);
	open_started(1);
	struct tw_limiter_task task = load_task(&load);
	task.timeout_ns = 10 * MS;
	task.retry = (struct tw_retry){.count = 3, .delay_ns = MS, .allow = allow_late};
	load_submit_task(&load, &task);
	limited_pump(&home);
	expect_eq(load.starts, 1);
	expect_settled(&load, TW_JOB_STATUS_TIMED_OUT, -ETIMEDOUT);
	close_all();
}
