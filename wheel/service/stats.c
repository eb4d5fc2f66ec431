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
	uint32_t end = tw_load_acquire(&service->slots.depot.fresh);
	for (uint32_t slot = 1; slot < end; slot++) {
		uint64_t word = tw_load_acquire(&service->slots.words[slot]);
		if (tw__word_state(word) == TW__FREE)
			continue;
		stats->pending += tw__word_armed(word);
		stats->disarmed += tw__word_disarmed(word);
		if (tw__word_has_record(word) &&
		    tw_load_relaxed(&service->slots.records[slot].group))
			stats->group_members++;
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
	}
	stats->cancelled += tw_load_relaxed(&service->without_lane.cancelled);
	stats->dropped += tw_load_relaxed(&service->without_lane.dropped);
}

static uint64_t bytes_of_lanes(tw_service *service)
{
	uint64_t bytes = 0;
	for (struct tw__lane *lane = tw__queue_first(&service->queue); lane; lane = lane->next) {
		const struct tw__local *local = (const struct tw__local *)lane;
		bool runs = tw_load_relaxed(&local->latencies) != NULL;
		bytes += sizeof *local + (runs ? TW__LATENCIES * sizeof(struct tw__histogram) : 0);
		/* and their reserves */
		uint64_t segments =
		    tw__lane_segments(lane) + tw__lane_segments(&local->young) + UINT64_C(2);
		bytes += segments * sizeof(struct tw__segment);
	}
	return bytes;
}

static uint64_t memory_of(tw_service *service)
{
	return tw__slots_bytes(&service->slots) +
	       tw_load_relaxed(&service->driver->counters.chunks_used) * sizeof(struct tw__chunk) +
	       service->driver->table_bytes + bytes_of_lanes(service) + sizeof *service +
	       (tw_load_relaxed(&service->groups.fresh) - UINT64_C(1)) *
		   (sizeof(struct tw__group) + sizeof(struct tw__completion));
}

static void read_driver(tw_service *service, struct tw_service_stats *stats)
{
	stats->refused = tw_load_relaxed(&service->submitted->refused);
	stats->wakeups = tw_load_relaxed(&service->driver->counters.wakeups);
	stats->ticks = tw_load_relaxed(&service->driver->counters.ticks);
	stats->tick_cpu_ns = tw_load_relaxed(&service->driver->counters.tick_cpu_ns);
	stats->tick_cpu_max_ns = tw_load_relaxed(&service->driver->counters.tick_cpu_max_ns);
	stats->entries = tw_load_relaxed(&service->entries) + tw__lanes_unread(service);
	stats->dead_entries = stats->entries > stats->pending ? stats->entries - stats->pending : 0;
	stats->retired_slots = tw_load_relaxed(&service->slots.retired);
	stats->clock_steps = tw_load_relaxed(&service->driver->counters.clock_steps);
	stats->threads = tw_load_relaxed(&service->queue.owner_count);
	stats->memory_bytes = memory_of(service);
}

/* ------------------------------------------------------------ distributions */

/* Too large for small stacks; the caller frees it. NULL: no memory. */
static struct tw_service_histograms *stats_collect(tw_service *service)
{
	struct tw_service_histograms *out = tw__alloc_zeroed(1, sizeof *out);
	if (!out)
		return NULL;
	tw__histogram_collect(&out->lateness, &service->driver->counters.lateness);
	for (struct tw__lane *lane = tw__queue_first(&service->queue); lane; lane = lane->next) {
		struct tw__local *local = (struct tw__local *)lane;
		/* pairs with ready_to_run */
		struct tw__histogram *latencies = tw_load_acquire(&local->latencies);
		if (!latencies)
			continue;
		tw__histogram_collect(&out->wait, &latencies[TW__LATENCY_WAIT]);
		tw__histogram_collect(&out->run, &latencies[TW__LATENCY_RUN]);
	}
	return out;
}

int tw_service_histograms(tw_service *service, struct tw_service_histograms *out)
{
	int r = TW__OUT_CHECK(tw_service_histograms, out, wait);
	if (!r)
		r = tw__service_check(service);
	if (r)
		return r;
	struct tw_service_histograms *histograms = stats_collect(service);
	if (!histograms)
		return -ENOMEM;
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
	struct tw_service_histograms *histograms = stats_collect(service);
	if (!histograms)
		return -ENOMEM;
	struct tw_service_stats stats = {0};
	sum_lanes(service, &stats);
	count_words(service, &stats);
	count_groups(service, &stats);
	read_driver(service, &stats);
	stats.lateness = tw__histogram_latency(&histograms->lateness);
	stats.wait = tw__histogram_latency(&histograms->wait);
	stats.run = tw__histogram_latency(&histograms->run);
	tw__free(histograms);
	tw__struct_write(out, &stats, sizeof stats);
	return 0;
}

static void print_latency(FILE *out, const char *name, const struct tw_latency *l)
{
	fprintf(out, "%-18s %12" PRIu64 " %12.1f %12.1f %12.1f %12.1f\n", name, l->count,
		(double)l->p50_ns / 1e3, (double)l->p99_ns / 1e3, (double)l->p999_ns / 1e3,
		(double)l->max_ns / 1e3);
}

static void print_table(const struct tw_service_stats *s, FILE *out)
{
	const struct {
		const char *name;
		uint64_t value;
	} rows[] = {
	    {"scheduled", s->scheduled},
	    {"fired", s->fired},
	    {"cancelled", s->cancelled},
	    {"dropped", s->dropped},
	    {"pending", s->pending},
	    {"disarmed", s->disarmed},
	    {"groups", s->groups},
	    {"group members", s->group_members},
	    {"rejected", s->rejected},
	    {"runs", s->runs},
	    {"overruns", s->overruns},
	    {"resets", s->resets},
	    {"resets, lazy", s->resets - s->resets_eager},
	    {"resets, eager", s->resets_eager},
	    {"refused", s->refused},
	    {"wake-ups", s->wakeups},
	    {"busy ticks", s->ticks},
	    {"tick CPU, us", s->tick_cpu_ns / 1000},
	    {"longest tick, us", s->tick_cpu_max_ns / 1000},
	    {"entries", s->entries},
	    {"dead entries", s->dead_entries},
	    {"retired slots", s->retired_slots},
	    {"clock steps", s->clock_steps},
	    {"threads", s->threads},
	    {"memory, KiB", s->memory_bytes / 1024},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		fprintf(out, "%-18s %12" PRIu64 "\n", rows[i].name, rows[i].value);
	fprintf(out, "%-18s %12s %12s %12s %12s %12s\n", "microseconds", "count", "p50", "p99",
		"p99.9", "max");
	print_latency(out, "lateness", &s->lateness);
	print_latency(out, "wait", &s->wait);
	print_latency(out, "run", &s->run);
}

int tw_service_stats_print(const struct tw_service_stats *stats, FILE *out)
{
	TW__UNCANCELLED;
	if (!stats || !out)
		return tw__invalid("%s is NULL", stats ? "out" : "stats");
	int r = TW__OUT_CHECK(tw_service_stats, stats, fired);
	if (r)
		return r;
	/* an older program's struct ends earlier: the rest is 0 */
	struct tw_service_stats known = {0};
	memcpy(&known, stats, stats->size < sizeof known ? stats->size : sizeof known);
	print_table(&known, out);
	return 0;
}
