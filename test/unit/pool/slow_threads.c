/* Growth while new threads wait for a processor. */
#include "pools.h"
#include "test/support/faults.h"
#include "test/support/rig.h"

TestSuite(pool_slow_threads, .timeout = 120);

enum { JOBS = 63, LOOKS = 20 };

struct scene {
	tw_pool *pool;
	struct gate callbacks, processors; /* new threads wait for a processor */
	atomic_int looks;
	int let_go;
};

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
	for (int from = 0, held = 0; atomic_load(&scene->callbacks.inside) < JOBS; sched_yield()) {
		expect_eq(tw_pool_stats(scene->pool, &stats), 0);
		int looks = atomic_load(&scene->looks);
		from = stats.grown == grown ? from : looks;
		grown = stats.grown;
		held = atomic_load(&scene->processors.inside) - scene->let_go;
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
	faults_at_starts(count_its_looks, &scene);
	expect_eq(tw_pool_create(&scene.pool, &cfg), 0);
	faults_at_starts(pass, &scene.processors);
	block(scene.pool, &scene.callbacks, JOBS);
	for (int held; (held = await_a_round(&scene)) > 0; rounds++) {
		scene.let_go += held;
		let_go(&scene.processors, held);
	}
	expect_le(rounds, 10);
	let_go(&scene.processors, 64);
	let_go(&scene.callbacks, JOBS);
	expect_eq(tw_pool_destroy(scene.pool), 0);
	faults_at_starts(NULL, NULL);
}
