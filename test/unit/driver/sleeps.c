/*
 * The awaited event happens between the last look and the sleep. A hook runs in that moment
 * (faults.h) and does all that the sleeper waits for, wake-up included. A thread that misses it
 * sleeps forever.
 */
#include <errno.h>
#include <sched.h>

#include "executor/pool/parts.h"
#include "test/support/faults.h"
#include "test/support/limited.h"
#include "test/support/members.h"
#include "test/support/strands.h"
#include "test/support/rig_suite.h"

TestSuite(driver_sleeps, .init = open_rig, .fini = close_rig, .timeout = 30);

/* ------------------------------------------------------------------ the limiter */

static struct limited home;
static struct load load = {.home = &home};

static void pump(void *arg)
{
	limited_pump(arg);
}

static void open_loaded(uint32_t max_pending)
{
	struct tw_limiter_config config = limited_config(1);
	config.max_pending = max_pending;
	limited_open(&home, &config);
	expect_eq(tw_limiter_set_paused(home.limiter, false), 0);
	load_submit(&load);
	faults_at_sleeps(pump, &home);
}

static void close_loaded(unsigned jobs)
{
	faults_at_sleeps(NULL, NULL);
	expect_eq(limited_stats(&home).succeeded, jobs);
	limited_close(&home);
}

Test(driver_sleeps, a_job_that_settles_before_its_waiter_sleeps)
{
	open_loaded(0);
	expect_eq(tw_job_wait(home.limiter, load.job, TW_FOREVER, NULL), 0);
	close_loaded(1);
	open_loaded(0);
	expect_eq(tw_limiter_wait_idle(home.limiter, TW_FOREVER), 0);
	close_loaded(1);
}

Test(driver_sleeps, room_in_a_limiter_that_comes_before_the_submitter_sleeps)
{
	struct load second = {.home = &home, .number = 1};
	open_loaded(1);
	struct tw_limiter_task task = load_task(&second);
	task.wait_ns = TW_FOREVER;
	expect_eq(tw_limiter_submit_task(home.limiter, &task, &second.job), 0);
	limited_pump(&home);
	close_loaded(2);
}

/* ---------------------------------------------------------------- the semaphore */

static void give_back(void *arg)
{
	tw_semaphore_release(arg, 1);
}

Test(driver_sleeps, a_permit_that_comes_before_its_waiter_sleeps)
{
	tw_semaphore *permits;
	expect_eq(tw_semaphore_create(&permits, rig.service, tw_executor_inline(), 1), 0);
	expect_eq(tw_semaphore_acquire(permits, 1, 0), 0);
	faults_at_sleeps(give_back, permits);
	expect_eq(tw_semaphore_acquire(permits, 1, TW_FOREVER), 0);
	faults_at_sleeps(NULL, NULL);
	give_back(permits);
	expect_eq(tw_semaphore_destroy(permits), 0);
}

/* --------------------------------------------------------- runs on another thread */

struct runner {
	struct queue_executor *queue;
	atomic_bool begun, go, over;
	pthread_t thread;
};

static struct runner runner;

static void stay(void *arg)
{
	(void)arg;
	atomic_store(&runner.begun, true);
	while (!atomic_load(&runner.go))
		sched_yield();
}

static void *run_next(void *arg)
{
	queue_executor_run_next(arg);
	return NULL;
}

static void begin(struct queue_executor *on)
{
	runner = (struct runner){.queue = on};
	expect_eq(pthread_create(&runner.thread, NULL, run_next, on), 0);
	while (!atomic_load(&runner.begun))
		sched_yield();
}

static void let_it_end(void *unused)
{
	(void)unused;
	if (atomic_exchange(&runner.go, true))
		return;
	pthread_join(runner.thread, NULL);
	atomic_store(&runner.over, true);
}

static void cancel_while_it_ends(bool by_group)
{
	tw_timer timer;
	reopen_on_queue();
	tw_group group = group_of(&rig);
	struct tw_task task = {.size = sizeof task, .fn = stay, .when_ns = MS};
	if (by_group)
		task.group = group;
	expect_eq(tw_schedule_task(rig.service, &task, &timer), 0);
	rig_advance(&rig, 3 * MS);
	begin(&queue);
	faults_at_sleeps(let_it_end, NULL);
	if (by_group)
		expect_eq(tw_group_cancel_wait(rig.service, group, TW_FOREVER), TW_CANCELLED);
	else
		expect_eq(tw_cancel_wait(rig.service, timer, TW_FOREVER), TW_FINISHED);
	faults_at_sleeps(NULL, NULL);
	expect_eq(runner.over, true);
	queue_executor_run_all(&queue);
}

Test(driver_sleeps, a_run_that_ends_before_its_canceller_sleeps)
{
	cancel_while_it_ends(false);
	cancel_while_it_ends(true);
}

static void end_on_strand(bool by_close)
{
	struct strand_rig strands;
	tw_strand_task_id task;
	strand_rig_open(&strands);
	expect_eq(tw_strand_schedule(strands.strand, 0, stay, NULL, &task), 0);
	begin(&strands.queue);
	faults_at_sleeps(let_it_end, NULL);
	if (by_close)
		expect_eq(tw_strand_close(strands.strand, TW_FOREVER), 0);
	else
		expect_eq(tw_strand_cancel_wait(strands.strand, task, TW_FOREVER), TW_FINISHED);
	faults_at_sleeps(NULL, NULL);
	expect_eq(runner.over, true);
	strand_rig_close(&strands);
}

Test(driver_sleeps, a_strands_task_that_ends_before_its_canceller_or_closing_thread_sleeps)
{
	end_on_strand(false);
	end_on_strand(true);
}

/* --------------------------------------------------------------------- the pool */

static tw_pool *pool;
static pthread_t closer;

static tw_pool *full_pool(void)
{
	struct tw_pool_config cfg = {
	    .size = sizeof cfg, .workers = 1, .max_workers = 1, .queue = 16};
	expect_eq(tw_pool_create(&pool, &cfg), 0);
	runner = (struct runner){.over = false};
	expect_eq(tw_pool_submit(pool, stay, NULL), 0);
	while (!atomic_load(&runner.begun))
		sched_yield();
	for (int i = 0; i < 16; i++)
		expect_eq(tw_pool_submit(pool, stay, NULL), 0);
	return pool;
}

static void await_empty(void *unused)
{
	struct tw_pool_stats stats = {.size = sizeof stats};
	(void)unused;
	atomic_store(&runner.go, true);
	do {
		sched_yield();
		tw_pool_stats(pool, &stats);
	} while (stats.completed < 17);
}

Test(driver_sleeps, room_in_a_pool_that_comes_before_the_submitter_sleeps)
{
	faults_at_sleeps(await_empty, NULL);
	expect_eq(tw_pool_submit_wait(full_pool(), stay, NULL, TW_FOREVER), 0);
	faults_at_sleeps(NULL, NULL);
	expect_eq(tw_pool_destroy(pool), 0);
}

static void *close_pool(void *unused)
{
	(void)unused;
	tw_pool_close(pool, TW_CLOSE_DRAIN, NULL, NULL);
	return NULL;
}

static void begin_close(void *unused)
{
	(void)unused;
	if (atomic_exchange(&runner.over, true))
		return;
	pthread_create(&closer, NULL, close_pool, NULL);
	while (!(tw_load_relaxed(&pool->ring.tail) & TW__RING_CLOSED))
		sched_yield();
}

/* No worker makes room: only the close sends the submitter away. */
Test(driver_sleeps, a_pools_close_that_begins_before_the_submitter_sleeps)
{
	tw_pool *full = full_pool();
	faults_at_sleeps(begin_close, NULL);
	expect_eq(tw_pool_submit_wait(full, stay, NULL, TW_FOREVER), -ESHUTDOWN);
	faults_at_sleeps(NULL, NULL);
	atomic_store(&runner.go, true);
	pthread_join(closer, NULL);
	expect_eq(tw_pool_destroy(pool), 0);
}
