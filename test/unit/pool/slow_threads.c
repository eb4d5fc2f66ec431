/* Growth while threads wait for a processor: new ones, or the reserve in the middle of a look. */
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "executor/pool/parts.h"
#include "test/support/faults.h"
#include "test/support/rig.h"

TestSuite(pool_slow_threads, .timeout = 120);

enum { JOBS = 63, LOOKS = 20 };

struct scene {
	tw_pool *pool;
	sem_t permits, processors;
	atomic_int inside, held; /* callbacks that block; new threads without a processor */
};

static void wait_on(sem_t *semaphore)
{
	while (sem_wait(semaphore) != 0) {
	}
}

static void block(void *arg)
{
	struct scene *scene = arg;
	atomic_fetch_add(&scene->inside, 1);
	wait_on(&scene->permits);
}

static void wait_for_a_processor(void *arg)
{
	struct scene *scene = arg;
	atomic_fetch_add(&scene->held, 1);
	wait_on(&scene->processors);
}

static void give(sem_t *semaphore, int n)
{
	while (n-- > 0)
		sem_post(semaphore);
}

/* Waits until no thread has come for the time of LOOKS looks. How many there are. */
static int await_a_round(struct scene *scene)
{
	uint64_t since_ns = tw_clock_now(tw_clock_monotonic()), now_ns = since_ns;
	int held = 0;
	while (held == 0 || now_ns - since_ns < LOOKS * tw__pool_times.look_ns) {
		int now_held = atomic_load(&scene->held);
		now_ns = tw_clock_now(tw_clock_monotonic());
		since_ns = now_held == held ? since_ns : now_ns;
		held = now_held;
		if (atomic_load(&scene->inside) == JOBS)
			break;
		sched_yield();
	}
	return held;
}

/*
 * Four rounds are enough: 2, 8, 32, and the rest. A busy machine may split some. Once a look that
 * found new threads not yet running took that for the end of the need. 63 callbacks that block took
 * 31 rounds, and a timer behind them was late by as many waits.
 */
Test(pool_slow_threads, each_round_of_growth_starts_more_threads_than_the_one_before)
{
	struct scene scene = {0};
	tw_pool *pool = NULL;
	struct tw_pool_config cfg = {.size = sizeof cfg, .workers = 2};
	int rounds = 0;
	sem_init(&scene.permits, 0, 0);
	sem_init(&scene.processors, 0, 0);
	expect_eq(tw_pool_create(&pool, &cfg), 0);
	faults_at_starts(wait_for_a_processor, &scene);
	for (int i = 0; i < JOBS; i++)
		expect_eq(tw_pool_submit(pool, block, &scene), 0);
	while (atomic_load(&scene.inside) < JOBS) {
		int held = await_a_round(&scene);
		atomic_fetch_sub(&scene.held, held);
		give(&scene.processors, held);
		rounds++;
	}
	expect_le(rounds, 10);
	give(&scene.processors, 64);
	give(&scene.permits, JOBS);
	expect_eq(tw_pool_destroy(pool), 0);
	faults_at_starts(NULL, NULL);
}

/* Between the look at a worker's runs and the look at its thread. */
static void let_the_worker_finish(void *arg)
{
	struct scene *scene = arg;
	faults_at_reads(NULL, NULL);
	give(&scene->permits, 1);
	while (tw_load_seq_cst(&scene->pool->asleep.sleepers) == 0)
		sched_yield();
}

static void stop_at_reads(void *arg)
{
	faults_at_reads(let_the_worker_finish, arg);
}

static void count(void *arg)
{
	atomic_fetch_add((atomic_int *)arg, 1);
}

/* Its thread sleeps by then, for want of work. */
Test(pool_slow_threads, a_worker_that_has_gone_on_during_the_look_is_not_blocked)
{
	struct scene scene = {0};
	atomic_int behind = 0;
	struct tw_pool_config cfg = {.size = sizeof cfg, .workers = 1};
	struct tw_pool_stats stats = {.size = sizeof stats};
	sem_init(&scene.permits, 0, 0);
	faults_at_starts(stop_at_reads, &scene);
	expect_eq(tw_pool_create(&scene.pool, &cfg), 0);
	expect_eq(tw_pool_submit(scene.pool, block, &scene), 0);
	expect_eq(tw_pool_submit(scene.pool, count, &behind), 0);
	while (!atomic_load(&behind) || tw__reserve_is_armed(scene.pool))
		sched_yield();
	expect_eq(tw_pool_stats(scene.pool, &stats), 0);
	expect_eq(stats.grown, 0);
	expect_eq(tw_pool_destroy(scene.pool), 0);
	faults_at_starts(NULL, NULL);
}
