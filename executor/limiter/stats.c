/* What a limiter tells of itself. */
#include <errno.h>
#include <string.h>

#include "executor/limiter/internal.h"
#include "executor/limiter/inbox.h"

static uint64_t mean(uint64_t sum, uint64_t count)
{
	return count ? sum / count : 0;
}

static void read_counters(const struct tw_limiter *l, struct tw_limiter_stats *stats)
{
	stats->max_concurrency = l->limit;
	stats->running = l->running;
	stats->late = l->late;
	stats->debt = l->running > l->limit ? l->running - l->limit : 0;
	stats->pending = l->pending + l->between;
	stats->retrying = l->retrying;
	stats->added = l->added;
	stats->succeeded = l->succeeded;
	stats->failed = l->failed;
	stats->cancelled = l->cancelled;
	stats->timed_out = l->timed_out;
	stats->dropped = l->dropped;
	stats->retried = l->retried;
	stats->rejected = l->rejected;
	stats->refused_completions = l->refused_completions;
}

int tw_limiter_stats_get(tw_limiter *l, struct tw_limiter_stats *out)
{
	int r = !out || out->size < offsetof(struct tw_limiter_stats, running) ? -EINVAL : TW__CHECK(l);
	if (r)
		return r;
	struct tw_limiter_stats stats = {.size = out->size};
	tw__limiter_relock(l);
	read_counters(l, &stats);
	stats.queue = tw__histogram_read(&l->queue);
	stats.run = tw__histogram_read(&l->run);
	stats.queue_mean_ns = mean(l->queue_sum_ns, stats.queue.count);
	stats.run_mean_ns = mean(l->run_sum_ns, stats.run.count);
	pthread_mutex_unlock(&l->lock);
	if (out->size > sizeof stats)
		memset((char *)out + sizeof stats, 0, out->size - sizeof stats);
	memcpy(out, &stats, out->size < sizeof stats ? out->size : sizeof stats);
	return 0;
}
