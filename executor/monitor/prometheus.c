/* The figures of services in Prometheus' text format. */
#include "executor/monitor/prometheus.h"

#include <stdlib.h>
#include <string.h>

#include "mpsc/base/cancel.h"
#include "tickwheel/version.h"
#include "wheel/base/text.h"

/* The bounds of the histograms are powers of two: 2^10 ns (about 1 us) to 2^36 ns (about 69 s). */
enum { FIRST_BOUND = 10, LAST_BOUND = 36 };

#define EACH(page, reading)                                   \
	const struct tw__reading *reading = (page)->readings; \
	reading < (page)->readings + (page)->count;           \
	reading++

static uint64_t at(const struct tw__reading *reading, size_t offset)
{
	return *(const uint64_t *)(const void *)((const char *)reading + offset);
}

/* A member of each reading. */
#define OF(member) offsetof(struct tw__reading, member)

/*
 * A figure whose name has "seconds" is a time. One whose name ends in "_total" is a counter, any
 * other a gauge. One whose name begins with "pool_" is left out for services without a pool.
 */
struct figure {
	const char *name, *help;
	size_t offset;
};

static bool is_counter(const char *name)
{
	size_t length = strlen(name), end = sizeof "_total" - 1;
	return length > end && strcmp(name + length - end, "_total") == 0;
}

static void write_figure(struct tw__page *page, const struct figure *figure)
{
	const char *name = figure->name;
	bool of_pool = strncmp(name, "pool_", 5) == 0, begun = false;
	bool is_time = strstr(name, "seconds") != NULL;
	for (EACH(page, reading)) {
		if (of_pool && !reading->pool.size)
			continue;
		if (!begun)
			tw__page_head(page, name, is_counter(name) ? "counter" : "gauge",
				      figure->help);
		begun = true;
		tw__page_begin(page, reading, name);
		(is_time ? tw__page_time : tw__page_count)(page, at(reading, figure->offset));
	}
}

static void write_figures(struct tw__page *page, const struct figure *figures, size_t count)
{
	for (size_t i = 0; i < count; i++)
		write_figure(page, &figures[i]);
}

static void histogram_of(struct tw__page *page, const struct tw__reading *reading, const char *name,
			 const struct tw_histogram *histogram)
{
	char part[64];
	snprintf(part, sizeof part, "%s_bucket", name);
	for (unsigned i = FIRST_BOUND; i <= LAST_BOUND; i++) {
		uint64_t bound_ns = UINT64_C(1) << i;
		tw__page_begin(page, reading, part);
		tw__page_begin_label(page, "le");
		tw__page_seconds(page->out, bound_ns);
		fputc('"', page->out);
		tw__page_count(page, tw__histogram_count_upto(histogram, bound_ns));
	}
	tw__page_begin(page, reading, part);
	tw__page_label(page, "le", "+Inf");
	tw__page_count(page, histogram->count);
	snprintf(part, sizeof part, "%s_sum", name);
	tw__page_begin(page, reading, part);
	tw__page_time(page, histogram->sum_ns);
	snprintf(part, sizeof part, "%s_count", name);
	tw__page_begin(page, reading, part);
	tw__page_count(page, histogram->count);
}

static void histogram(struct tw__page *page, const char *name, const char *help, size_t offset)
{
	char most[64];
	tw__page_head(page, name, "histogram", help);
	for (EACH(page, reading))
		histogram_of(
		    page, reading, name,
		    (const struct tw_histogram *)(const void *)((const char *)reading + offset));
	snprintf(most, sizeof most, "max_%s", name);
	write_figure(page,
		     &(struct figure){most, "The longest of these since the service was created.",
				      offset + offsetof(struct tw_histogram, max_ns)});
}

/* Scheduled is the sum of all ends, of what is pending and of what is disarmed. */
static const struct figure counts[] = {
    {"timers_scheduled_total", "Timers accepted. A series counts once.", OF(stats.scheduled)},
    {"timers_pending", "Timers that are armed.", OF(stats.pending)},
    {"timers_rejected_total", "Schedules refused for lack of room or after a close.",
     OF(stats.rejected)},
    {"groups", "Groups of timers that exist.", OF(stats.groups)},
    {"timers_disarmed", "Persistent timers that are not armed.", OF(stats.disarmed)},
    {"group_members", "Timers that are members of a group.", OF(stats.group_members)},
    {"runs_total", "Callbacks that have returned.", OF(stats.runs)},
    {"overruns_total", "Instants that series missed.", OF(stats.overruns)},
    {"resets_total", "Timers moved to another time.", OF(stats.resets)},
    {"resets_eager_total", "Of these, moves to an earlier time.", OF(stats.resets_eager)},
    {"refused_total", "Runs that an executor refused. Each try counts.", OF(stats.refused)},
    {"wakeups_total", "Times the tick thread woke up.", OF(stats.wakeups)},
    {"turns_total", "Polls of the driver that found work.", OF(stats.ticks)},
    {"tick_cpu_seconds_total", "CPU time of the tick thread in these polls.",
     OF(stats.tick_cpu_ns)},
    {"tick_cpu_max_seconds", "CPU time of the longest poll.", OF(stats.tick_cpu_max_ns)},
    {"clock_steps_total", "Times the clock was seen to step back.", OF(stats.clock_steps)},
    {"wheel_entries", "Entries in the wheel, dead ones included.", OF(stats.entries)},
    {"retired_slots", "Slots whose generations are used up.", OF(stats.retired_slots)},
    {"threads", "Living threads that have used the service.", OF(stats.threads)},
    {"memory_bytes", "Memory held for timers.", OF(stats.memory_bytes)},
};

static const struct figure states[] = {
    {"overdue_timers", "Timers whose tick has passed and that have not run.", OF(liveness.overdue)},
    {"overdue_seconds", "How long the oldest of them is overdue.", OF(liveness.overdue_ns)},
    {"driver_late_seconds", "How late the tick thread is for its planned poll.",
     OF(liveness.turn_late_ns)},
    {"running", "User functions under way.", OF(liveness.running)},
    {"longest_run_seconds", "How long the oldest of them has been running.",
     OF(liveness.longest_ns)},
    {"pool_workers", "Threads of the pool that runs the callbacks.", OF(pool.workers)},
    {"pool_max_workers", "The most threads that the pool may have.", OF(pool_max_workers)},
    {"pool_busy_workers", "Threads of the pool that are inside a run.", OF(pool.running)},
    {"pool_queued", "Runs that wait for a thread of the pool.", OF(pool.queued)},
    {"pool_at_max", "1 while runs wait and the pool cannot grow.", OF(pool_at_max)},
    {"pool_grown_total", "Threads started because the others were blocked.", OF(pool.grown)},
    {"pool_start_failures_total", "Threads that could not be started.", OF(pool.start_failures)},
};

static void write_ends(struct tw__page *page)
{
	static const struct {
		const char *fate;
		size_t offset;
	} ends[] = {{"fired", OF(stats.fired)},
		    {"cancelled", OF(stats.cancelled)},
		    {"dropped", OF(stats.dropped)},
		    {"late", OF(stats.late_dropped)}};
	tw__page_head(page, "timers_ended_total", "counter", "Timers that have ended, by fate.");
	for (EACH(page, reading))
		for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
			tw__page_begin(page, reading, "timers_ended_total");
			tw__page_label(page, "fate", ends[i].fate);
			tw__page_count(page, at(reading, ends[i].offset));
		}
}

/* Runs under way, counted by kind and name: one line for each name, however many runs there are. */
static void write_runs_of(struct tw__page *page, const struct tw__reading *reading)
{
	const struct tw__seen_run *runs = reading->runs;
	for (size_t i = 0, end; i < reading->run_count; i = end) {
		for (end = i + 1;
		     end < reading->run_count && !tw__runs_compare(&runs[i], &runs[end]); end++)
			continue;
		tw__page_begin(page, reading, "running_by_name");
		tw__page_label(page, "kind", tw__run_kind_name(runs[i].kind));
		tw__page_label(page, "name", runs[i].name);
		tw__page_count(page, end - i);
	}
}

static void write_runs(struct tw__page *page)
{
	bool any = false;
	for (EACH(page, reading))
		any |= reading->run_count != 0;
	if (any)
		tw__page_head(page, "running_by_name", "gauge",
			      "User functions under way, by kind and name.");
	for (EACH(page, reading))
		write_runs_of(page, reading);
}

/* ---------------------------------------------------------------------- all */

void tw__prometheus_figures(struct tw__page *page)
{
	tw__page_head(page, "build_info", "gauge", "The version of the library.");
	char version[32];
	snprintf(version, sizeof version, "%d.%d.%d", TW_VERSION_MAJOR, TW_VERSION_MINOR,
		 TW_VERSION_PATCH);
	for (EACH(page, reading)) {
		tw__page_begin(page, reading, "build_info");
		tw__page_label(page, "version", version);
		tw__page_count(page, 1);
	}
	write_ends(page);
	write_figures(page, counts, sizeof counts / sizeof *counts);
	histogram(page, "lateness_seconds", "From a timer's tick to its hand-over.",
		  OF(histograms.lateness));
	histogram(page, "wait_seconds", "From hand-over to the start of the callback.",
		  OF(histograms.wait));
	histogram(page, "run_seconds", "Duration of callbacks.", OF(histograms.run));
	write_figures(page, states, sizeof states / sizeof *states);
	write_runs(page);
}

/* One service has a label if it has a name. Each of several has one: its name, or its number. */
static void set_label(const tw_service *service, size_t i, size_t count,
		      struct tw__reading *reading)
{
	reading->service = service->config.name;
	if (reading->service || count == 1)
		return;
	snprintf(reading->number, sizeof reading->number, "%zu", i);
	reading->service = reading->number;
}

/* Else two samples of the page would be the same. */
static int check_labels(const struct tw__reading *readings, size_t count)
{
	for (size_t i = 1; i < count; i++)
		for (size_t k = 0; k < i; k++)
			if (strcmp(readings[i].service, readings[k].service) == 0)
				return tw__misuse(
				    -EINVAL,
				    "tw_service_stats_prometheus_all: services %zu and %zu "
				    "have the same name",
				    k, i);
	return 0;
}

static int write_services(tw_service *const *services, struct tw__reading *readings, size_t count,
			  FILE *out)
{
	int r = 0;
	for (size_t i = 0; i < count; i++)
		set_label(services[i], i, count, &readings[i]);
	r = check_labels(readings, count);
	for (size_t i = 0; i < count && !r; i++)
		r = tw__reading_take(services[i], &readings[i]);
	struct tw__page page = {.out = out, .readings = readings, .count = count};
	if (!r)
		tw__prometheus_figures(&page);
	return r ? r : ferror(out) ? -EIO : 0;
}

int tw_service_stats_prometheus_all(tw_service *const *services, size_t count, FILE *out)
{
	TW__UNCANCELLED;
	if (!services || !out)
		return tw__invalid("%s is NULL", services ? "out" : "services");
	if (!count)
		return tw__invalid("count is 0");
	for (size_t i = 0; i < count; i++) {
		int r = tw__service_check(services[i]);
		if (r)
			return r;
	}
	struct tw__reading *readings = calloc(count, sizeof *readings);
	if (!readings)
		return -ENOMEM;
	int r = write_services(services, readings, count, out);
	for (size_t i = 0; i < count; i++)
		tw__reading_free(&readings[i]);
	free(readings);
	return r;
}

int tw_service_stats_prometheus(tw_service *service, FILE *out)
{
	int r = out ? tw__service_check(service) : tw__invalid("out is NULL");
	return r ? r : tw_service_stats_prometheus_all(&service, 1, out);
}
