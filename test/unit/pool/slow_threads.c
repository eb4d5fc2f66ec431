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
	atomic_int looks;
	int let_go;
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

/* About to sleep. While the two first workers are inside callbacks: the reserve, after a look. */
static void count_looks(void *arg)
{
	atomic_fetch_add(&((struct scene *)arg)->looks, 1);
}

static void count_its_looks(void *arg)
{
	faults_at_sleeps(count_looks, arg);
}

/*
 * Waits until all threads that were started have come, and LOOKS looks in a row have started none.
 * How many there are.
 */
static int await_a_round(struct scene *scene)
{
	struct tw_pool_stats stats = {.size = sizeof stats};
	uint64_t grown = 0;
	for (int from = 0, held = 0; atomic_load(&scene->inside) < JOBS; sched_yield()) {
		expect_eq(tw_pool_stats(scene->pool, &stats), 0);
		int looks = atomic_load(&scene->looks);
		from = stats.grown == grown ? from : looks;
		grown = stats.grown;
		held = atomic_load(&scene->held);
		if (held > 0 && (uint64_t)(scene->let_go + held) == grown && looks - from >= LOOKS)
			return held;
	}
	return 0;
}

/*
 * Four rounds are enough: 2, 8, 32, and the rest. Once a look that found new threads not yet
 * running took that for the end of the need. 63 callbacks that block took 31 rounds, and a timer
 * behind them was late by as many waits.
 */
Test(pool_slow_threads, each_round_of_growth_starts_more_threads_than_the_one_before)
{
	struct scene scene = {0};
	struct tw_pool_config cfg = {.size = sizeof cfg, .workers = 2};
	int rounds = 0;
	sem_init(&scene.permits, 0, 0);
	sem_init(&scene.processors, 0, 0);
	faults_at_starts(count_its_looks, &scene);
	expect_eq(tw_pool_create(&scene.pool, &cfg), 0);
	faults_at_starts(wait_for_a_processor, &scene);
	for (int i = 0; i < JOBS; i++)
		expect_eq(tw_pool_submit(scene.pool, block, &scene), 0);
	for (int held; (held = await_a_round(&scene)) > 0; rounds++) {
		atomic_fetch_sub(&scene.held, held);
		scene.let_go += held;
		give(&scene.processors, held);
	}
	expect_le(rounds, 10);
	give(&scene.processors, 64);
	give(&scene.permits, JOBS);
	expect_eq(tw_pool_destroy(scene.pool), 0);
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
	tw__pool_times.on_cpu_ns = 3600 * SECOND; /* a look that comes late reads, too */
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
