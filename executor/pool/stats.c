/* Statistics of a pool. A static program that asks for none does not link this file. */
#include "executor/pool/parts.h"
#include "mpsc/base/reserve.h"

static void sum_workers(tw_pool *pool, struct tw_pool_stats *stats, struct tw_histogram *sums)
{
	for (unsigned i = 0, slots = tw_load_seq_cst(&pool->slots); i < slots; i++) {
		struct tw__worker *worker = &pool->workers[i];
		stats->workers += tw_load_relaxed(&worker->state) == TW__WORKER_ALIVE;
		stats->running += tw_load_relaxed(&worker->runs) & 1;
		stats->completed += tw_load_relaxed(&worker->completed);
		tw__histogram_collect(&sums[0], &worker->wait);
		tw__histogram_collect(&sums[1], &worker->run);
	}
	stats->wait = tw__histogram_latency(&sums[0]);
	stats->run = tw__histogram_latency(&sums[1]);
}

int tw_pool_stats(tw_pool *pool, struct tw_pool_stats *out)
{
	int r = TW__OUT_CHECK(tw_pool_stats, out, services);
	if (!r)
		r = tw__pool_check(pool);
	if (r)
		return r;
	struct tw_histogram *sums = tw__alloc_zeroed(2, sizeof *sums);
	if (!sums)
		return -ENOMEM;
	struct tw_pool_stats stats = {0};
	stats.rejected = tw_load_relaxed(&pool->rejected);
	stats.dropped = tw_load_relaxed(&pool->dropped);
	stats.grown = tw_load_relaxed(&pool->starter.grown);
	stats.at_max = tw_load_relaxed(&pool->starter.at_max);
	stats.start_failures = tw_load_relaxed(&pool->starter.start_failures);
	tw__tiny_lock(&pool->lock);
	stats.queued = tw__ring_count(&pool->ring) + pool->aside.count;
	stats.services = pool->services;
	tw__tiny_unlock(&pool->lock);
	sum_workers(pool, &stats, sums);
	tw__free(sums);
	tw__struct_write(out, &stats, sizeof stats);
	return 0;
}

int tw_service_pool_stats(tw_service *service, struct tw_pool_stats *out)
{
	int r = TW__OUT_CHECK(tw_pool_stats, out, services); /* before the lock */
	if (!r)
		r = tw__service_check(service);
	if (r)
		return r;
	/* close takes the pool away under this lock (service.c) */
	pthread_mutex_lock(&tw__registry);
	tw_pool *pool = tw_load_relaxed(&service->watch.pool);
	r = pool ? tw_pool_stats(pool, out) : -ENOENT;
	pthread_mutex_unlock(&tw__registry);
	return r;
}
