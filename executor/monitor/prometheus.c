/*
 * Writes a service's figures in Prometheus' text format, version 0.0.4. Reads them all first, by
 * the public calls and tw__runs_visit.
 *
 * Times are seconds. They are written from integers, since printf would write the decimal point of
 * the process's locale.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tickwheel/pool.h"
#include "tickwheel/prometheus.h"
#include "mpsc/base/cancel.h"
#include "tickwheel/version.h"
#include "mpsc/base/histogram.h"
#include "mpsc/base/text.h"
#include "wheel/service/liveness.h"

/* The bounds of the histograms are powers of two: 2^10 ns (about 1 us) to 2^36 ns (about 69 s). */
enum { FIRST_BOUND = 10, LAST_BOUND = 36 };

#define NANOSECONDS UINT64_C(1000000000)

/* All that a page shows, read before anything is written. */
struct page {
	FILE *out;
	const char *service; /* value of the label; NULL: none */
	bool in_labels, no_memory;
	struct tw_service_stats stats;
	struct tw_service_histograms histograms;
	struct tw_service_liveness liveness;
	struct tw_pool_stats pool; /* size 0: the service has none */
	uint64_t pool_max_workers, pool_at_max;
	struct tw__seen_run *runs; /* sorted by name */
	size_t run_count, run_room;
};

/* ------------------------------------------------------------------- reading */

static void keep_run(void *context, const struct tw__seen_run *run)
{
	struct page *page = context;
	if (page->run_count == page->run_room) {
		size_t room = page->run_room ? 2 * page->run_room : 64;
		struct tw__seen_run *runs = realloc(page->runs, room * sizeof *runs);
		page->no_memory |= !runs;
		if (!runs)
			return;
		page->runs = runs;
		page->run_room = room;
	}
	page->runs[page->run_count++] = *run;
}

/* Different names have different labels (tw__text_put), so equal runs are those of one sample. */
static int compare_runs(const void *a, const void *b)
{
	const struct tw__seen_run *x = a, *y = b;
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

static int read_figures(tw_service *service, struct page *page)
{
	page->service = service->config.name;
	page->stats.size = sizeof page->stats;
	page->histograms.size = sizeof page->histograms;
	page->liveness.size = sizeof page->liveness;
	int r = tw_service_stats(service, &page->stats);
	if (!r)
		r = tw_service_histograms(service, &page->histograms);
	if (!r)
		r = tw_service_liveness(service, &page->liveness);
	if (!r)
		r = read_pool(service, &page->pool);
	if (r)
		return r;
	page->pool_max_workers = page->liveness.pool_max_workers;
	page->pool_at_max = page->liveness.pool_at_max;
	tw__runs_visit(service, page->liveness.now_ns, keep_run, page);
	if (page->run_count)
		qsort(page->runs, page->run_count, sizeof *page->runs, compare_runs);
	return page->no_memory ? -ENOMEM : 0;
}

/* ------------------------------------------------------------------- samples */

static void write_head(const struct page *page, const char *name, const char *type,
		       const char *help)
{
	fprintf(page->out, "# HELP tickwheel_%s %s\n# TYPE tickwheel_%s %s\n", name, help, name,
		type);
}

static void write_seconds(FILE *out, uint64_t ns)
{
	fprintf(out, "%" PRIu64 ".%09" PRIu64, ns / NANOSECONDS, ns % NANOSECONDS);
}

/* A label's name and first quote. */
static void begin_label(struct page *page, const char *name)
{
	fprintf(page->out, "%c%s=\"", page->in_labels ? ',' : '{', name);
	page->in_labels = true;
}

static void write_label(struct page *page, const char *name, const char *value)
{
	begin_label(page, name);
	tw__text_put(page->out, value ? value : "", TW__TEXT_LABEL);
	fputc('"', page->out);
}

/* A sample: its name, then labels, then its value. The first label is the service's. */
static void begin_sample(struct page *page, const char *name)
{
	fprintf(page->out, "tickwheel_%s", name);
	page->in_labels = false;
	if (page->service)
		write_label(page, "service", page->service);
}

static void end_sample(const struct page *page, uint64_t value)
{
	fprintf(page->out, "%s%" PRIu64 "\n", page->in_labels ? "} " : " ", value);
}

static void end_sample_time(const struct page *page, uint64_t ns)
{
	fputs(page->in_labels ? "} " : " ", page->out);
	write_seconds(page->out, ns);
	fputc('\n', page->out);
}

/* ------------------------------------------------------------------- figures */

/*
 * A figure whose name has "seconds" is a time. One whose name ends in "_total" is a counter, any
 * other a gauge. One whose name begins with "pool_" is left out for services without a pool.
 */
struct figure {
	const char *name, *help;
	size_t offset;
};

#define OF(member) offsetof(struct page, member)

static uint64_t at(const struct page *page, size_t offset)
{
	return *(const uint64_t *)(const void *)((const char *)page + offset);
}

static bool is_counter(const char *name)
{
	size_t length = strlen(name), end = sizeof "_total" - 1;
	return length > end && strcmp(name + length - end, "_total") == 0;
}

static void write_figure(struct page *page, const struct figure *figure)
{
	const char *name = figure->name;
	if (strncmp(name, "pool_", 5) == 0 && !page->pool.size)
		return;
	write_head(page, name, is_counter(name) ? "counter" : "gauge", figure->help);
	begin_sample(page, name);
	bool is_time = strstr(name, "seconds") != NULL;
	(is_time ? end_sample_time : end_sample)(page, at(page, figure->offset));
}

static void write_figures(struct page *page, const struct figure *figures, size_t count)
{
	for (size_t i = 0; i < count; i++)
		write_figure(page, &figures[i]);
}

static void write_histogram(struct page *page, const char *name, const char *help, size_t offset)
{
	const struct tw_histogram *histogram = (const void *)((const char *)page + offset);
	char part[64];
	write_head(page, name, "histogram", help);
	snprintf(part, sizeof part, "%s_bucket", name);
	for (unsigned i = FIRST_BOUND; i <= LAST_BOUND; i++) {
		uint64_t bound_ns = UINT64_C(1) << i;
		begin_sample(page, part);
		begin_label(page, "le");
		write_seconds(page->out, bound_ns);
		fputc('"', page->out);
		end_sample(page, tw__histogram_count_upto(histogram, bound_ns));
	}
	begin_sample(page, part);
	write_label(page, "le", "+Inf");
	end_sample(page, histogram->count);
	snprintf(part, sizeof part, "%s_sum", name);
	begin_sample(page, part);
	end_sample_time(page, histogram->sum_ns);
	snprintf(part, sizeof part, "%s_count", name);
	begin_sample(page, part);
	end_sample(page, histogram->count);
	snprintf(part, sizeof part, "max_%s", name);
	write_figure(page,
		     &(struct figure){part, "The longest of these since the service was created.",
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

static void write_ends(struct page *page)
{
	static const struct {
		const char *fate;
		size_t offset;
	} ends[] = {{"fired", OF(stats.fired)},
		    {"cancelled", OF(stats.cancelled)},
		    {"dropped", OF(stats.dropped)}};
	write_head(page, "timers_ended_total", "counter", "Timers that have ended, by fate.");
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		begin_sample(page, "timers_ended_total");
		write_label(page, "fate", ends[i].fate);
		end_sample(page, at(page, ends[i].offset));
	}
}

/* Runs under way, counted by name: one line for each name, however many runs there are. */
static void write_runs(struct page *page)
{
	const struct tw__seen_run *runs = page->runs, *end = runs + page->run_count;
	if (runs == end)
		return;
	write_head(page, "running_by_name", "gauge", "User functions under way, by name.");
	while (runs < end) {
		const struct tw__seen_run *first = runs;
		while (runs < end && compare_runs(first, runs) == 0)
			runs++;
		begin_sample(page, "running_by_name");
		write_label(page, "name", first->name);
		end_sample(page, (uint64_t)(runs - first));
	}
}

static void write_version(struct page *page)
{
	char version[32];
	snprintf(version, sizeof version, "%d.%d.%d", TW_VERSION_MAJOR, TW_VERSION_MINOR,
		 TW_VERSION_PATCH);
	write_head(page, "build_info", "gauge", "The version of the library.");
	begin_sample(page, "build_info");
	write_label(page, "version", version);
	end_sample(page, 1);
}

static void write_page(struct page *page)
{
	write_version(page);
	write_ends(page);
	write_figures(page, counts, sizeof counts / sizeof *counts);
	write_histogram(page, "lateness_seconds", "From a timer's tick to its hand-over.",
			OF(histograms.lateness));
	write_histogram(page, "wait_seconds", "From hand-over to the start of the callback.",
			OF(histograms.wait));
	write_histogram(page, "run_seconds", "Duration of callbacks.", OF(histograms.run));
	write_figures(page, states, sizeof states / sizeof *states);
	write_runs(page);
}

int tw_service_stats_prometheus(tw_service *service, FILE *out)
{
	TW__UNCANCELLED;
	int r = out ? tw__service_check(service) : tw__invalid("out is NULL");
	if (r)
		return r;
	struct page *page = calloc(1, sizeof *page);
	if (!page)
		return -ENOMEM;
	page->out = out;
	r = read_figures(service, page);
	if (!r)
		write_page(page);
	free(page->runs);
	free(page);
	return r ? r : ferror(out) ? -EIO : 0;
}
