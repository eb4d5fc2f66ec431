/* The limiter with threads that wait, and on a pool. */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>

#include "test/support/limiter_suite.h"
#include "test/support/pooled_limiter.h"

TestSuite(limiter_threads, .timeout = 60);

struct waiter {
	struct load *load;
	int answer;
	struct tw_job_result result;
};

static void *wait_for_job(void *arg)
{
	struct waiter *self = arg;
	self->answer = tw_job_wait(home.limiter, self->load->job, 50 * SECOND, &self->result);
	return NULL;
}

static void *wait_idle(void *arg)
{
	struct waiter *self = arg;
	self->answer = tw_limiter_wait_idle(home.limiter, 50 * SECOND);
	return NULL;
}

Test(limiter_threads, calls_wait_no_longer_than_asked)
{
	struct load first = LOAD(1, .held = true), second = LOAD(2), third = LOAD(3);
	struct tw_limiter_config config = limited_config(1);
	config.max_pending = 1;
	open_with(config);
	load_submit(&first);
	limited_pump(&home);
	load_submit(&second);
	struct tw_limiter_task task = load_task(&third);
	task.wait_ns = 2 * MS;
	uint64_t start_ns = tw_clock_now(tw_clock_monotonic());
	expect_eq(tw_limiter_submit_task(home.limiter, &task, NULL), -ETIMEDOUT);
	expect_eq(tw_job_wait(home.limiter, first.job, 2 * MS, NULL), -ETIMEDOUT);
	expect_eq(tw_limiter_wait_idle(home.limiter, 2 * MS), -ETIMEDOUT);
	expect_eq(tw_limiter_close(home.limiter, TW_CLOSE_DROP, 2 * MS), -ETIMEDOUT);
	expect_ge(tw_clock_now(tw_clock_monotonic()) - start_ns, 8 * MS);
	complete(&first, 0);
	expect_eq(tw_limiter_close(home.limiter, TW_CLOSE_DROP, 0), 0);
	close_all();
}

static unsigned idles;

static void count_idle(void *arg, const struct tw_job_result *results, size_t n)
{
	idles++;
}

struct closer {
	enum tw_close_mode mode;
	int answer;
	unsigned idles; /* calls when it returned */
};

static void *close_it(void *arg)
{
	struct closer *self = arg;
	self->answer = tw_limiter_close(home.limiter, self->mode, TW_FOREVER);
	self->idles = idles;
	return NULL;
}

/* The running one is waited for, and what is left of the line; then the idle listeners. */
static void check_close(enum tw_close_mode mode)
{
	struct load first = LOAD(0, .held = true), second = LOAD(1, .answer = -EIO, .fails = 1);
	struct closer closer = {.mode = mode, .answer = 1};
	pthread_t thread;
	bool drops = mode == TW_CLOSE_DROP;
	idles = 0;
	open_started(1);
	load_submit(&first);
	limited_pump(&home);
	struct tw_limiter_task task = load_task(&second);
	task.retry = (struct tw_retry){.count = 1, .delay_ns = 5 * MS};
	load_submit_task(&second, &task);
	expect_eq(tw_limiter_on_idle(home.limiter, count_idle, NULL), 0);
	expect_eq(pthread_create(&thread, NULL, close_it, &closer), 0);
	limited_await_end_waiter(&home);
	expect_eq(second.dones, drops);
	complete(&first, 0);
	limited_advance(&home, 10 * MS);
	expect_eq(pthread_join(thread, NULL), 0);
	expect_eq(closer.answer, 0);
	expect_eq(closer.idles, 1);
	expect_settled(&first, TW_JOB_STATUS_SUCCEEDED, 0);
	expect_settled(&second, drops ? TW_JOB_STATUS_DROPPED : TW_JOB_STATUS_SUCCEEDED,
		       drops ? -ESHUTDOWN : 0);
	close_all();
}

Test(limiter_threads, close_waits_for_the_running_and_for_the_idle_listeners)
{
	check_close(TW_CLOSE_DROP);
	check_close(TW_CLOSE_DRAIN);
}

/* The idle is over when the thread that waited for it runs; and the job's node may serve again. */
Test(limiter_threads, waits_for_a_job_and_for_idle_return_with_it)
{
	struct load load = LOAD(1, .held = true), next[2];
	struct waiter waiters[2] = {{.load = &load, .answer = 1}, {.answer = 1}};
	pthread_t threads[2];
	open_started(1);
	load_submit(&load);
	limited_pump(&home);
	expect_eq(pthread_create(&threads[0], NULL, wait_for_job, &waiters[0]), 0);
	await_job_waiter(home.limiter, load.job);
	expect_eq(pthread_create(&threads[1], NULL, wait_idle, &waiters[1]), 0);
	limited_await_end_waiter(&home);
	complete(&load, 0);
	held(next, 2);
	for (int i = 0; i < 2; i++)
		expect_eq(pthread_join(threads[i], NULL), 0);
	expect_eq(waiters[0].answer, 0);
	expect_eq(waiters[0].result.value, &load);
	expect_eq(waiters[1].answer, 0);
	complete(&next[0], 0);
	complete(&next[1], 0);
	close_all();
}

/* ------------------------------------------------------------------ on a pool */

/* A worker may still have to do with it for a moment. */
Test(limiter_threads, a_kept_job_whose_result_is_taken_is_gone_at_once)
{
	open_pooled((struct tw_service_config){.workers = 0}, 2);
	for (int i = 0; i < 2000; i++) {
		struct tw_limiter_task task = {
		    .size = sizeof(task), .fn = job_succeeds, .flags = TW_LIMITER_TASK_KEEP};
		tw_job job;
		expect_eq(tw_limiter_submit_task(limiter, &task, &job), 0);
		expect_eq(tw_job_wait(limiter, job, TW_FOREVER, NULL), 0);
		expect_eq(tw_job_state(limiter, job), TW_JOB_STATE_GONE);
		expect_eq(tw_job_wait(limiter, job, 0, NULL), TW_GONE);
	}
	close_pooled();
}

/* -------------------------------------------------------------------- pause */

enum { ROOM = 1000 };

static atomic_int entered;
static atomic_bool over;

static int enter(void *arg, struct tw_job_run *run)
{
	atomic_fetch_add(&entered, 1);
	return 0;
}

static void *submit_all_the_time(void *arg)
{
	while (!atomic_load(&over))
		if (stats_now().pending >= ROOM || tw_limiter_submit(limiter, enter, NULL, NULL))
			sched_yield();
	return NULL;
}

/* Starts so far; all of them are counted, and each is either running or has been entered. */
static void check_a_pause(void)
{
	expect_eq(tw_limiter_set_paused(limiter, true), 0);
	struct tw_limiter_stats paused = stats_now(), later = paused;
	expect_le((uint64_t)atomic_load(&entered), paused.queue.count);
	while (later.running || (later.added < paused.added + 20 && later.pending < ROOM)) {
		sched_yield();
		later = stats_now();
	}
	expect_eq(later.queue.count, paused.queue.count);
	expect_eq((uint64_t)atomic_load(&entered), paused.queue.count);
	expect_eq(tw_limiter_set_paused(limiter, false), 0);
	while (stats_now().queue.count < paused.queue.count + 20)
		sched_yield();
}

Test(limiter_threads, no_job_starts_after_a_pause_has_returned_however_many_threads)
{
	pthread_t submitter;
	open_pooled((struct tw_service_config){.workers = 2}, 2);
	expect_eq(pthread_create(&submitter, NULL, submit_all_the_time, NULL), 0);
	for (int i = 0; i < 200; i++) {
		/* that the submitter has some left during the pause, as a rule */
		while (stats_now().pending > ROOM - 100)
			sched_yield();
		check_a_pause();
	}
	atomic_store(&over, true);
	pthread_join(submitter, NULL);
	close_pooled();
}
