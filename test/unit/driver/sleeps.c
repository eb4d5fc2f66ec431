/*
 * The awaited event happens between the last look and the sleep. A hook runs in that moment
 * (faults.h) and does all that the sleeper waits for, wake-up included. A thread that misses it
 * sleeps forever.
 */
#include <errno.h>
#include <sched.h>

#include "executor/pool/parts.h"
#include "test/support/faults.h"
#include "test/support/limiter_script.h"
#include "test/support/semaphore_script.h"
#include "test/support/strand_script.h"
#include "test/support/timer_script.h"

TestSuite(driver_sleeps, .timeout = 30);

static const struct script of_timers[] = {
    {"a run that ends before its canceller sleeps",
     {{"given queued; timer 0 in=1 plain {stand 0}; hold; drive 3; beside 1 {next}; begun 0; "
       "at_sleep {let 0; joined 1}; cancel_wait 0",
       "@3 run 0 late=2, FINISHED"}}},
    {"the same for a group",
     {{"given queued; group 0; timer 0 in=1 plain group=0 {stand 0}; hold; drive 3; beside 1 "
       "{next}; begun 0; at_sleep {let 0; joined 1}; group_wait 0",
       "@3 run 0 late=2, CANCELLED"}}},
};

static const struct script of_strands[] = {
    {"a task that ends before its canceller sleeps",
     {{"submit 0 {stand 0}; hold; beside 1 {next}; begun 0; at_sleep {let 0; joined 1}; "
       "cancel_wait 0",
       "run 0, FINISHED"}}},
    {"a task that ends before a closing thread sleeps",
     {{"submit 0 {stand 0}; hold; beside 1 {next}; begun 0; at_sleep {let 0; joined 1}; close_wait",
       "run 0"}}},
};

static const struct script of_semaphores[] = {
    {"a permit that comes before its waiter sleeps",
     {{"acquire 1; at_sleep {-; release 1}; acquire 1 forever; release 1", "-"}}},
};

static const struct script of_limiters[] = {
    {"a job that settles before its waiter sleeps",
     {{"given limit=1; submit 0; at_sleep {-; pump}; wait 0 600000", "-, start 0, 0 ok, was ok"}}},
    {"a limiter that is idle before its waiter sleeps",
     {{"given limit=1; submit 0; at_sleep {-; pump}; wait_idle 600000", "-, start 0, 0 ok"}}},
    {"room that comes before the submitter sleeps",
     {{"given limit=1 pending=1 paused; submit 0; at_sleep {-; resume; pump}; submit 1 waits",
       "-, start 0, 0 ok, start 1, 1 ok"}}},
};

Test(driver_sleeps, follow_the_scripts)
{
	PLAY(&timer_stage, NULL, of_timers);
	PLAY(&strand_stage, NULL, of_strands);
	PLAY(&semaphore_stage, NULL, of_semaphores);
	PLAY(&limiter_stage, NULL, of_limiters);
}

/* --------------------------------------------------------------------- the pool */

static tw_pool *pool;
static pthread_t closer;
static struct {
	atomic_bool begun, go, over;
} runner;

static void stay(void *arg)
{
	atomic_store(&runner.begun, true);
	while (!atomic_load(&runner.go))
		sched_yield();
}

static tw_pool *full_pool(void)
{
	struct tw_pool_config cfg = {
	    .size = sizeof cfg, .workers = 1, .max_workers = 1, .queue = 16};
	expect_eq(tw_pool_create(&pool, &cfg), 0);
	runner.begun = runner.go = runner.over = false;
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
