/* Reads a service's counters and distributions, without a lock. */
#include "tickwheel/stats.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "mpsc/base/reserve.h"
#include "mpsc/base/process.h"
#include "mpsc/base/entry.h"
#include "wheel/core/wake.h"
#include "wheel/core/service.h"
#include "wheel/driver/driver.h"
#include "wheel/run/run.h"
#include "wheel/timer/group.h"

static void count_words(tw_service *service, struct tw_service_stats *stats)
{
	for (struct tw__walk at = tw__walk_over(&service->slots); tw__walk_on(&at);) {
		stats->pending += tw__word_armed(at.word);
		stats->disarmed += tw__word_disarmed(at.word);
		stats->group_members += tw__word_has_record(at.word) &&
					tw_load_relaxed(&service->slots.records[at.slot].group);
	}
}

static void count_groups(tw_service *service, struct tw_service_stats *stats)
{
	const struct tw__group *table = tw_load_acquire(&service->groups.table);
	uint32_t end = table ? tw_load_acquire(&service->groups.fresh) : 0;
	for (uint32_t index = 1; index < end; index++)
		stats->groups += !tw_load_relaxed(&table[index].dead);
}

static void sum_lanes(tw_service *service, struct tw_service_stats *stats)
{
	for (struct tw__lane *lane = tw__queue_first(&service->queue); lane; lane = lane->next) {
		struct tw__local *local = (struct tw__local *)lane;
		stats->scheduled += tw_load_relaxed(&local->magazine.scheduled);
		stats->fired += tw_load_relaxed(&local->fired);
		stats->cancelled += tw_load_relaxed(&local->magazine.cancelled);
		stats->dropped += tw_load_relaxed(&local->dropped);
		stats->rejected += tw_load_relaxed(&local->rejected);
		stats->runs += tw_load_relaxed(&local->runs);
		stats->overruns += tw_load_relaxed(&local->overruns);
		stats->resets += tw_load_relaxed(&local->resets);
		stats->resets_eager += tw_load_relaxed(&local->resets_eager);
		stats->memory_bytes += sizeof *local;
		if (tw_load_relaxed(&local->latencies))
			stats->memory_bytes += TW__LATENCIES * sizeof(struct tw__histogram);
		/* and their reserves */
		uint64_t segments =
		    tw__lane_segments(lane) + tw__lane_segments(&local->young) + UINT64_C(2);
		stats->memory_bytes += segments * sizeof(struct tw__segment);
	}
	stats->cancelled += tw_load_relaxed(&service->without_lane.cancelled);
	stats->dropped += tw_load_relaxed(&service->without_lane.dropped);
}

static void read_driver(tw_service *service, struct tw_service_stats *stats)
{
	const struct tw__driver *driver = service->driver;
	stats->refused = tw_load_relaxed(&service->submitted->refused);
	stats->wakeups = tw_load_relaxed(&driver->counters.wakeups);
	stats->ticks = tw_load_relaxed(&driver->counters.ticks);
	stats->tick_cpu_ns = tw_load_relaxed(&driver->counters.tick_cpu_ns);
	stats->tick_cpu_max_ns = tw_load_relaxed(&driver->counters.tick_cpu_max_ns);
	stats->entries = tw_load_relaxed(&service->entries) + tw__lanes_unread(service);
	stats->dead_entries = tw__span(stats->pending, stats->entries);
	stats->retired_slots = tw_load_relaxed(&service->slots.retired);
	stats->clock_steps = tw_load_relaxed(&driver->counters.clock_steps);
	stats->threads = tw_load_relaxed(&service->queue.owner_count);
	stats->memory_bytes +=
	    sizeof *service + tw__slots_bytes(&service->slots) + driver->table_bytes +
	    tw_load_relaxed(&driver->counters.chunks_used) * sizeof(struct tw__chunk) +
	    (tw_load_relaxed(&service->groups.fresh) - UINT64_C(1)) *
		(sizeof(struct tw__group) + sizeof(struct tw__completion));
}

/* ------------------------------------------------------------ distributions */

enum { LATENESS = TW__LATENCIES, DISTRIBUTIONS };

static void collect(tw_service *service, int which, struct tw_histogram *sum)
{
	if (which == LATENESS)
		tw__histogram_collect(sum, &service->driver->counters.lateness);
	else
		for (struct tw__lane *lane = tw__queue_first(&service->queue); lane;
		     lane = lane->next) {
			/* pairs with ready_to_run */
			const struct tw__histogram *latencies =
			    tw_load_acquire(&((struct tw__local *)lane)->latencies);
			if (latencies)
				tw__histogram_collect(sum, &latencies[which]);
		}
}

int tw_service_histograms(tw_service *service, struct tw_service_histograms *out)
{
	int r = TW__OUT_CHECK(tw_service_histograms, out, wait);
	if (!r)
		r = tw__service_check(service);
	if (r)
		return r;
	/* too large for small stacks */
	struct tw_service_histograms *histograms = tw__alloc_zeroed(1, sizeof *histograms);
	if (!histograms)
		return -ENOMEM;
	collect(service, LATENESS, &histograms->lateness);
	collect(service, TW__LATENCY_WAIT, &histograms->wait);
	collect(service, TW__LATENCY_RUN, &histograms->run);
	tw__struct_write(out, histograms, sizeof *histograms);
	tw__free(histograms);
	return 0;
}

/* ----------------------------------------------------------------- counters */

int tw_service_stats(tw_service *service, struct tw_service_stats *out)
{
	int r = TW__OUT_CHECK(tw_service_stats, out, fired);
	if (!r)
		r = tw__service_check(service);
	if (r)
		return r;
	struct tw_service_stats stats = {0};
	struct tw_latency latencies[DISTRIBUTIONS];
	sum_lanes(service, &stats);
	count_words(service, &stats);
	count_groups(service, &stats);
	read_driver(service, &stats);
	for (int i = 0; i < DISTRIBUTIONS; i++) { /* one at a time: 4 KB */
		struct tw_histogram sum = {0};
		collect(service, i, &sum);
		latencies[i] = tw__histogram_latency(&sum);
	}
	stats.lateness = latencies[LATENESS];
	stats.wait = latencies[TW__LATENCY_WAIT];
	stats.run = latencies[TW__LATENCY_RUN];
	tw__struct_write(out, &stats, sizeof stats);
	return 0;
}
