/* Statistics of a pool. */

#include "mpsc/base/struct_read.h"
#include "executor/pool/parts.h"

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

static void sum_sources(tw_pool *pool, struct tw_pool_stats *stats)
{
	for (struct tw__source *s = tw_load_acquire(&pool->sources); s; s = s->next) {
		stats->queued += tw__batch_ring_count(&s->ring);
		stats->services += tw_load_relaxed(&s->in_use);
	}
	stats->queued += tw__task_ring_count(&pool->tasks) + tw__work_queue_count(&pool->works) +
			 tw__work_queue_count(&pool->jobs.queue);
}

int tw_pool_stats(tw_pool *pool, struct tw_pool_stats *out)
{
	int r = TW__OUT_CHECK(tw_pool_stats, out, services);
	if (!r)
		r = tw__pool_check(pool);
	if (r)
		return r;
	struct tw_histogram *sums = calloc(2, sizeof *sums);
	if (!sums)
		return -ENOMEM;
	struct tw_pool_stats stats = {0};
	stats.rejected = tw_load_relaxed(&pool->counters.rejected);
	stats.dropped = tw_load_relaxed(&pool->counters.dropped);
	stats.grown = tw_load_relaxed(&pool->starter.grown);
	stats.at_max = tw_load_relaxed(&pool->starter.at_max);
	stats.start_failures = tw_load_relaxed(&pool->starter.start_failures);
	sum_workers(pool, &stats, sums);
	sum_sources(pool, &stats);
	free(sums);
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
	struct tw__source *source = tw_load_relaxed(&service->layers.pool);
	r = source ? tw_pool_stats(source->pool, out) : -ENOENT;
	pthread_mutex_unlock(&tw__registry);
	return r;
}
