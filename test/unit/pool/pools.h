/* Pools for tests, their stats, a task that counts its runs, and a gate that blocks tasks. */
#ifndef TEST_UNIT_POOL_POOLS_H
#define TEST_UNIT_POOL_POOLS_H

#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "executor/pool/parts.h"
#include "test/support/expect.h"

static inline tw_pool *pool_with(uint32_t workers, uint32_t max_workers, uint32_t queue)
{
	tw_pool *pool = NULL;
	struct tw_pool_config cfg = {
	    .size = sizeof cfg, .workers = workers, .max_workers = max_workers, .queue = queue};
	expect_eq(tw_pool_create(&pool, &cfg), 0);
	return pool;
}

/* A pool that never grows. */
static inline tw_pool *pool_of(uint32_t workers, uint32_t queue)
{
	return pool_with(workers, workers, queue);
}

/* A pool that may grow. max_workers 0: up to the default maximum. */
static inline tw_pool *pool_up_to(uint32_t workers, uint32_t max_workers)
{
	return pool_with(workers, max_workers, 0);
}

static inline struct tw_pool_stats pool_stats(tw_pool *pool)
{
	struct tw_pool_stats stats = {.size = sizeof stats};
	expect_eq(tw_pool_stats(pool, &stats), 0);
	return stats;
}

/* Tells whether that number of workers sleep, and none is being woken. */
static inline bool pool_sleeps(tw_pool *pool, unsigned workers)
{
	unsigned asleep = 0;
	tw__tiny_lock(&pool->lock);
	for (struct tw__sleeper *sleeper = pool->idle; sleeper; sleeper = sleeper->next)
		asleep += sleeper != &pool->starter.sleeper;
	bool searching = pool->searching;
	tw__tiny_unlock(&pool->lock);
	return asleep == workers && !searching;
}

static inline void count(void *arg)
{
	atomic_fetch_add((atomic_int *)arg, 1);
}

static inline void await_value(atomic_int *value, int wanted)
{
	while (atomic_load(value) != wanted)
		sched_yield();
}

/* fn(arg) is submitted, and counts in *done when it has run. */
static inline void run_task_of(tw_pool *pool, tw_fn *fn, void *arg, atomic_int *done)
{
	int before = atomic_load(done);
	expect_eq(tw_pool_submit(pool, fn, arg), 0);
	await_value(done, before + 1);
}

/* A gate: tasks block in it until the test lets them go, one by one. Zeros are a shut one. */
struct gate {
	atomic_int permits, inside, passed;
};

static inline void pass(void *arg)
{
	struct gate *gate = arg;
	atomic_fetch_add(&gate->inside, 1);
	int permits = atomic_load(&gate->permits);
	while (!permits || !atomic_compare_exchange_weak(&gate->permits, &permits, permits - 1)) {
		if (!permits)
			tw__futex_wait((_Atomic uint32_t *)&gate->permits, 0, UINT64_MAX);
		permits = atomic_load(&gate->permits);
	}
	atomic_fetch_add(&gate->passed, 1);
}

static inline void let_go(struct gate *gate, int n)
{
	atomic_fetch_add(&gate->permits, n);
	tw__futex_wake((_Atomic uint32_t *)&gate->permits, INT_MAX);
}

static inline void block(tw_pool *pool, struct gate *gate, int tasks)
{
	for (int i = 0; i < tasks; i++)
		expect_eq(tw_pool_submit(pool, pass, gate), 0);
}

/* Returns when all of them are inside. */
static inline void occupy(tw_pool *pool, struct gate *gate, int tasks)
{
	int before = atomic_load(&gate->inside);
	block(pool, gate, tasks);
	await_value(&gate->inside, before + tasks);
}

#endif
