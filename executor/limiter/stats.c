/* What a limiter tells of itself. */

#include "executor/limiter/inbox.h"

static uint64_t mean(const struct tw__histogram *histogram, uint64_t count)
{
	return count ? tw_load_relaxed(&histogram->sum_ns) / count : 0;
}

static void read_counters(const struct tw_limiter *l, struct tw_limiter_stats *stats)
{
	stats->max_concurrency = l->permits.limit;
	stats->running = l->permits.running - l->permits.extra;
	stats->permits = l->permits.running;
	stats->late = l->permits.late;
	stats->debt =
	    l->permits.running > l->permits.limit ? l->permits.running - l->permits.limit : 0;
	stats->pending = l->pending + l->ends.between;
	stats->retrying = l->times.retrying;
	stats->added = l->counters.added;
	stats->succeeded = l->counters.ended[TW_JOB_STATUS_SUCCEEDED];
	stats->failed = l->counters.ended[TW_JOB_STATUS_FAILED];
	stats->cancelled = l->counters.ended[TW_JOB_STATUS_CANCELLED];
	stats->timed_out = l->counters.ended[TW_JOB_STATUS_TIMED_OUT];
	stats->dropped = l->counters.ended[TW_JOB_STATUS_DROPPED];
	stats->retried = l->counters.retried;
	stats->rejected = l->counters.rejected;
	stats->refused_completions = l->counters.refused_completions;
}

int tw_limiter_stats(tw_limiter *l, struct tw_limiter_stats *out)
{
	int r = TW__OUT_CHECK(tw_limiter_stats, out, running);
	if (!r)
		r = TW__CHECK(l, "limiter");
	if (r)
		return r;
	struct tw_limiter_stats stats = {0};
	tw__limiter_relock(l);
	read_counters(l, &stats);
	stats.queue = tw__histogram_read(&l->counters.queue);
	stats.run = tw__histogram_read(&l->counters.run);
	stats.queue_mean_ns = mean(&l->counters.queue, stats.queue.count);
	stats.run_mean_ns = mean(&l->counters.run, stats.run.count);
	pthread_mutex_unlock(&l->lock);
	tw__struct_write(out, &stats, sizeof stats);
	return 0;
}
