/* Pools for tests, their stats, and a task that counts its runs. */
#ifndef TEST_UNIT_POOL_POOLS_H
#define TEST_UNIT_POOL_POOLS_H

#include <stdatomic.h>

#include "executor/pool/parts.h"
#include "test/support/expect.h"

/* A pool that never grows. */
static inline tw_pool *pool_of(uint32_t workers, uint32_t queue)
{
	tw_pool *pool = NULL;
	struct tw_pool_config cfg = {
	    .size = sizeof cfg, .workers = workers, .max_workers = workers, .queue = queue};
	expect_eq(tw_pool_create(&pool, &cfg), 0);
	return pool;
}

/* A pool that may grow. max_workers 0: up to the default maximum. */
static inline tw_pool *pool_up_to(uint32_t workers, uint32_t max_workers)
{
	tw_pool *pool = NULL;
	struct tw_pool_config cfg = {
	    .size = sizeof cfg, .workers = workers, .max_workers = max_workers};
	expect_eq(tw_pool_create(&pool, &cfg), 0);
	return pool;
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
	for (struct tw__worker *worker = pool->idle; worker; worker = worker->next_idle)
		asleep++;
	bool searching = pool->searching;
	tw__tiny_unlock(&pool->lock);
	return asleep == workers && !searching;
}

static inline void count(void *arg)
{
	atomic_fetch_add((atomic_int *)arg, 1);
}

#endif
