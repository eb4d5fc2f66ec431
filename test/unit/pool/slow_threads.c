/*
 * Growth while new threads wait for a processor. A pool grew by two threads at a time on a busy
 * machine: a look that found new threads not yet running took that for the end of the need. 63
 * callbacks that block took 31 rounds, and a timer behind them was late by as many waits.
 */
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "executor/pool/parts.h"
#include "test/support/faults.h"
#include "test/support/rig.h"

TestSuite(pool_slow_threads, .timeout = 120);

enum { JOBS = 63, LOOKS = 20 };

struct scene {
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

/* Four rounds are enough: 2, 8, 32, and the rest. A busy machine may split some. */
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
