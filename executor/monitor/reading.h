/* All that a page shows of a service, read before anything is written. */
#ifndef TW_EXECUTOR_MONITOR_READING_H
#define TW_EXECUTOR_MONITOR_READING_H

#include "tickwheel/pool.h"
#include "wheel/run/watchdog.h"

struct tw__reading {
	struct tw_service_stats stats;
	struct tw_service_histograms histograms;
	struct tw_service_liveness liveness;
	struct tw_pool_stats pool; /* size 0: the service has none */
	uint64_t pool_max_workers, pool_at_max;
	struct tw__seen_run *runs; /* sorted by kind and name */
	size_t run_count, run_room;
	bool no_memory;
	const char *service; /* value of the label; NULL: none */
	char number[24];     /* of a service without a name: its value */
};

/*
 * Reads a service into a zeroed reading. Returns 0, or a negative errno. The caller calls
 * tw__reading_free in both cases.
 */
int tw__reading_take(tw_service *service, struct tw__reading *reading);

void tw__reading_free(struct tw__reading *reading);

/* The order of the runs: negative, 0 for the same kind and name, or positive. */
int tw__runs_compare(const void *a, const void *b);

#endif
