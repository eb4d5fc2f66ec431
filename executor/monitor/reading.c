#include "executor/monitor/reading.h"

#include <stdlib.h>
#include <string.h>

static void keep_run(void *context, const struct tw__seen_run *run)
{
	struct tw__reading *reading = context;
	if (reading->run_count == reading->run_room) {
		size_t room = reading->run_room ? 2 * reading->run_room : 64;
		struct tw__seen_run *runs = realloc(reading->runs, room * sizeof *runs);
		reading->no_memory |= !runs;
		if (!runs)
			return;
		reading->runs = runs;
		reading->run_room = room;
	}
	reading->runs[reading->run_count++] = *run;
}

int tw__runs_compare(const void *a, const void *b)
{
	const struct tw__seen_run *x = a, *y = b;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return strcmp(x->name ? x->name : "", y->name ? y->name : "");
}

static int read_pool(tw_service *service, struct tw_pool_stats *pool)
{
	pool->size = sizeof *pool;
	int r = tw_service_pool_stats(service, pool);
	if (r == -ENOENT)
		pool->size = 0;
	return r == -ENOENT ? 0 : r;
}

int tw__reading_take(tw_service *service, struct tw__reading *reading)
{
	reading->stats.size = sizeof reading->stats;
	reading->histograms.size = sizeof reading->histograms;
	reading->liveness.size = sizeof reading->liveness;
	int r = tw_service_stats(service, &reading->stats);
	if (!r)
		r = tw_service_histograms(service, &reading->histograms);
	if (!r)
		r = tw_service_liveness(service, &reading->liveness);
	if (!r)
		r = read_pool(service, &reading->pool);
	if (r)
		return r;
	reading->pool_max_workers = reading->liveness.pool_max_workers;
	reading->pool_at_max = reading->liveness.pool_at_max;
	tw__runs_visit(service, reading->liveness.now_ns, keep_run, reading);
	if (reading->run_count)
		qsort(reading->runs, reading->run_count, sizeof *reading->runs, tw__runs_compare);
	return reading->no_memory ? -ENOMEM : 0;
}

void tw__reading_free(struct tw__reading *reading)
{
	free(reading->runs);
}
