/* Growth while new threads wait for a processor. */
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

/* About to sleep. While the two first workers are inside callbacks: the starter, after a look. */
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
 * Four rounds are enough: 4, 12, 36 and the rest. A look that finds new threads not yet running
 * starts none, and the next one goes on with twice as many as there are.
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
