/* All that a page shows of a service, read before anything is written. */
#ifndef TW_EXECUTOR_MONITOR_READING_H
#define TW_EXECUTOR_MONITOR_READING_H

#include "tickwheel/pool.h"
#include "wheel/run/watchdog.h"

/* The largest groups of a service, for viewers. */
enum { TW__GROUPS_SHOWN = 16 };

struct tw__seen_group {
	uint32_t index;
	bool closed;
	uint64_t members; /* timers that have not ended */
	uint64_t running; /* of these: callbacks under way */
	uint64_t due_ns;  /* when the next member is due; UINT64_MAX: all run */
	const char *name; /* of the member that is due next, or of any; NULL: it has none */
	tw_fn *fn;        /* its callback, or NULL */
};

struct tw__reading {
	struct tw_service_stats stats;
	struct tw_service_histograms histograms;
	struct tw_service_liveness liveness;
	struct tw_pool_stats pool; /* size 0: the service has none */
	uint64_t pool_max_workers, pool_at_max;
	struct tw__seen_run *runs; /* sorted by kind and name */
	size_t run_count, run_room;
	bool no_memory;
	struct tw__seen_group groups[TW__GROUPS_SHOWN]; /* for viewers */
	int group_count;
	const char *service; /* value of the label; NULL: none */
	char number[24];     /* of a service without a name: its value */
};

/*
 * Reads a service into a zeroed reading; for viewers also its groups. Returns 0, or a negative
 * errno. tw__reading_free afterwards in any case.
 */
int tw__reading_take(tw_service *service, struct tw__reading *reading, bool for_viewers);

void tw__reading_free(struct tw__reading *reading);

/* The order of the runs: negative, 0 for the same kind and name, or positive. */
int tw__runs_compare(const void *a, const void *b);

#endif
