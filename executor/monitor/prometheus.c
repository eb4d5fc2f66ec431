/*
 * Prometheus' text format, version 0.0.4. Times are seconds. They are written from integers, since
 * printf would write the decimal point of the process's locale.
 */
#include "executor/monitor/prometheus.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "executor/monitor/groups.h"
#include "tickwheel/pool.h"
#include "tickwheel/version.h"
#include "wheel/base/misuse.h"
#include "wheel/base/text.h"
#include "wheel/core/service.h"
#include "wheel/core/ticks.h"
#include "wheel/run/watchdog.h"

/* The bounds of the histograms are powers of two: 2^10 ns (about 1 us) to 2^36 ns (about 69 s). */
enum { FIRST_BOUND = 10, LAST_BOUND = 36 };

#define NANOSECONDS UINT64_C(1000000000)

/* All that is written: read first, so that the text is written without a look at the service. */
struct reading {
	struct tw_service_stats stats;
	struct tw_service_histograms histograms;
	struct tw_service_liveness liveness;
	struct tw_pool_stats pool; /* size 0: the service has none */
	struct tw__seen_run *runs; /* sorted by kind and name */
	size_t run_count, run_room;
	bool no_memory;
	struct tw__seen_group groups[TW__GROUPS_SHOWN]; /* for viewers */
	int group_count;
};

/* ------------------------------------------------------------------ reading */

static void keep_run(void *context, const struct tw__seen_run *run)
{
	struct reading *reading = context;
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

static int compare_runs(const void *a, const void *b)
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

static int read_service(tw_service *service, struct reading *reading, bool live)
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
	tw__runs_visit(service, reading->liveness.now_ns, keep_run, reading);
	if (reading->run_count)
		qsort(reading->runs, reading->run_count, sizeof *reading->runs, compare_runs);
	if (live)
		reading->group_count = tw__groups_largest(service, reading->groups);
	return reading->no_memory || reading->group_count < 0 ? -ENOMEM : 0;
}

/* ------------------------------------------------------------------ writing */

static void head(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP tickwheel_%s %s\n# TYPE tickwheel_%s %s\n", name, help, name, type);
}

static void put_seconds(FILE *out, uint64_t ns)
{
	fprintf(out, "%" PRIu64 ".%09" PRIu64, ns / NANOSECONDS, ns % NANOSECONDS);
}

static void figure(FILE *out, const char *name, const char *type, const char *help, uint64_t value)
{
	head(out, name, type, help);
	fprintf(out, "tickwheel_%s %" PRIu64 "\n", name, value);
}

static void seconds(FILE *out, const char *name, const char *type, const char *help, uint64_t ns)
{
	head(out, name, type, help);
	fprintf(out, "tickwheel_%s ", name);
	put_seconds(out, ns);
	fputc('\n', out);
}

static void label(FILE *out, const char *name, const char *value)
{
	fprintf(out, "%s=\"", name);
	tw__text_put(out, value, TW__TEXT_LABEL);
	fputc('"', out);
}

static void histogram(FILE *out, const char *name, const char *help,
		      const struct tw_histogram *histogram)
{
	char most[64];
	head(out, name, "histogram", help);
	for (unsigned i = FIRST_BOUND; i <= LAST_BOUND; i++) {
		uint64_t bound_ns = UINT64_C(1) << i;
		fprintf(out, "tickwheel_%s_bucket{le=\"", name);
		put_seconds(out, bound_ns);
		fprintf(out, "\"} %" PRIu64 "\n", tw_histogram_count_upto(histogram, bound_ns));
	}
	fprintf(out, "tickwheel_%s_bucket{le=\"+Inf\"} %" PRIu64 "\n", name, histogram->count);
	fprintf(out, "tickwheel_%s_sum ", name);
	put_seconds(out, histogram->sum_ns);
	fprintf(out, "\ntickwheel_%s_count %" PRIu64 "\n", name, histogram->count);
	snprintf(most, sizeof most, "max_%s", name);
	seconds(out, most, "gauge", "The longest of these since the service was created.",
		histogram->max_ns);
}

/* Scheduled is the sum of all ends and of what is pending. */
static void write_ledger(FILE *out, const struct tw_service_stats *s)
{
	const struct {
		const char *fate;
		uint64_t count;
	} ends[] = {{"fired", s->fired},
		    {"cancelled", s->cancelled},
		    {"dropped", s->dropped},
		    {"late", s->late_dropped}};
	figure(out, "timers_scheduled_total", "counter", "Timers accepted. A series counts once.",
	       s->scheduled);
	head(out, "timers_ended_total", "counter", "Timers that have ended, by fate.");
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		fprintf(out, "tickwheel_timers_ended_total{fate=\"%s\"} %" PRIu64 "\n",
			ends[i].fate, ends[i].count);
	figure(out, "timers_pending", "gauge", "Timers that wait for their time.", s->pending);
	figure(out, "timers_rejected_total", "counter",
	       "Schedules refused for lack of room or after a close.", s->rejected);
	figure(out, "groups", "gauge", "Groups of timers that exist.", s->groups);
	figure(out, "timers_disarmed", "gauge", "Pending timers that are persistent and disarmed.",
	       s->disarmed);
	figure(out, "group_members", "gauge", "Pending timers that are members of a group.",
	       s->group_members);
}

static void write_counters(FILE *out, const struct tw_service_stats *s)
{
	figure(out, "runs_total", "counter", "Callbacks that have returned.", s->runs);
	figure(out, "overruns_total", "counter", "Instants that series missed.", s->overruns);
	figure(out, "resets_total", "counter", "Timers moved to another time.", s->resets);
	figure(out, "resets_eager_total", "counter", "Of these, moves to an earlier time.",
	       s->resets_eager);
	figure(out, "refused_total", "counter", "Runs that an executor refused. Each try counts.",
	       s->refused);
	figure(out, "wakeups_total", "counter", "Times the tick thread woke up.", s->wakeups);
	figure(out, "turns_total", "counter", "Polls of the driver that found work.", s->ticks);
	seconds(out, "tick_cpu_seconds_total", "counter",
		"CPU time of the tick thread in these polls.", s->tick_cpu_ns);
	seconds(out, "tick_cpu_max_seconds", "gauge", "CPU time of the longest poll.",
		s->tick_cpu_max_ns);
	figure(out, "clock_steps_total", "counter", "Times the clock was seen to step back.",
	       s->clock_steps);
	figure(out, "wheel_entries", "gauge", "Entries in the wheel, dead ones included.",
	       s->entries);
	figure(out, "retired_slots", "gauge", "Slots whose generations are used up.",
	       s->retired_slots);
	figure(out, "threads", "gauge", "Living threads that have used the service.", s->threads);
	figure(out, "memory_bytes", "gauge", "Memory held for timers.", s->memory_bytes);
}

static void write_liveness(FILE *out, const struct tw_service_liveness *l)
{
	figure(out, "overdue_timers", "gauge",
	       "Timers whose tick has passed and that have not run.", l->overdue);
	seconds(out, "overdue_seconds", "gauge", "How long the oldest of them is overdue.",
		l->overdue_ns);
	seconds(out, "driver_late_seconds", "gauge",
		"How late the tick thread is for its planned poll.", l->turn_late_ns);
	figure(out, "running", "gauge", "User functions under way.", l->running);
	seconds(out, "longest_run_seconds", "gauge",
		"How long the oldest of them has been running.", l->longest_ns);
}

static void write_pool(FILE *out, const struct tw_pool_stats *pool,
		       const struct tw_service_liveness *l)
{
	if (!pool->size)
		return;
	figure(out, "pool_workers", "gauge", "Threads of the pool that runs the callbacks.",
	       pool->workers);
	figure(out, "pool_max_workers", "gauge", "The most threads that the pool may have.",
	       l->pool_max_workers);
	figure(out, "pool_busy_workers", "gauge", "Threads of the pool that are inside a run.",
	       pool->running);
	figure(out, "pool_queued", "gauge", "Runs that wait for a thread of the pool.",
	       pool->queued);
	figure(out, "pool_at_max", "gauge", "1 while runs wait and the pool cannot grow.",
	       l->pool_at_max);
	figure(out, "pool_grown_total", "counter",
	       "Threads started because the others were blocked.", pool->grown);
	figure(out, "pool_start_failures_total", "counter", "Threads that could not be started.",
	       pool->start_failures);
}

/* Runs under way, counted by kind and name: one line for each name, however many runs there are. */
static void write_runs(FILE *out, const struct reading *reading)
{
	const struct tw__seen_run *runs = reading->runs;
	if (!reading->run_count)
		return;
	head(out, "running_by_name", "gauge", "User functions under way, by kind and name.");
	for (size_t i = 0, end; i < reading->run_count; i = end) {
		for (end = i + 1; end < reading->run_count && !compare_runs(&runs[i], &runs[end]);
		     end++)
			continue;
		fputs("tickwheel_running_by_name{", out);
		label(out, "kind", tw__run_kind_name(runs[i].kind));
		fputc(',', out);
		label(out, "name", runs[i].name ? runs[i].name : "");
		fprintf(out, "} %zu\n", end - i);
	}
}

/* --------------------------------------------------------------- for viewers */

static void write_ages(FILE *out, const struct reading *reading)
{
	uint64_t now_ns = reading->liveness.now_ns;
	char fn[TW__FUNCTION_ROOM];
	head(out, "run_age_seconds", "gauge", "How long each user function has been running.");
	for (size_t i = 0; i < reading->run_count; i++) {
		const struct tw__seen_run *run = &reading->runs[i];
		tw__text_function(fn, run->fn);
		fprintf(out, "tickwheel_run_age_seconds{run=\"%zu\",", i);
		label(out, "kind", tw__run_kind_name(run->kind));
		fputc(',', out);
		label(out, "name", run->name ? run->name : "");
		fputc(',', out);
		label(out, "fn", fn);
		fprintf(out, ",thread=\"%" PRIu32 "\"} ", run->thread_id);
		put_seconds(out, now_ns > run->since_ns ? now_ns - run->since_ns : 0);
		fputc('\n', out);
	}
}

/* The name and the function are those of the member that is due next, or of one that runs. */
static void write_groups(FILE *out, const struct reading *reading)
{
	uint64_t now_ns = reading->liveness.now_ns;
	char fn[TW__FUNCTION_ROOM];
	head(out, "largest_group_members", "gauge", "Timers of the groups that have the most.");
	for (int i = 0; i < reading->group_count; i++) {
		const struct tw__seen_group *group = &reading->groups[i];
		fn[0] = 0;
		if (group->fn)
			tw__text_function(fn, group->fn);
		fprintf(out, "tickwheel_largest_group_members{group=\"%" PRIu32 "\",state=\"%s\",",
			group->index, group->closed ? "closed" : "open");
		label(out, "name", group->name ? group->name : "");
		fputc(',', out);
		label(out, "fn", fn);
		fprintf(out, "} %" PRIu64 "\n", group->members);
	}
	head(out, "largest_group_running", "gauge", "Callbacks of these groups under way.");
	for (int i = 0; i < reading->group_count; i++)
		fprintf(out, "tickwheel_largest_group_running{group=\"%" PRIu32 "\"} %" PRIu64 "\n",
			reading->groups[i].index, reading->groups[i].running);
	head(out, "largest_group_due_seconds", "gauge", "When their next timer is due.");
	for (int i = 0; i < reading->group_count; i++) {
		const struct tw__seen_group *group = &reading->groups[i];
		if (group->due_ns == UINT64_MAX)
			continue;
		fprintf(out, "tickwheel_largest_group_due_seconds{group=\"%" PRIu32 "\"} ",
			group->index);
		put_seconds(out, group->due_ns > now_ns ? group->due_ns - now_ns : 0);
		fputc('\n', out);
	}
}

static void write_cells(FILE *out, const struct tw_service_histograms *histograms)
{
	const struct {
		const char *of;
		const struct tw_histogram *histogram;
	} all[] = {{"lateness", &histograms->lateness},
		   {"wait", &histograms->wait},
		   {"run", &histograms->run}};
	head(out, "cell", "gauge",
	     "Durations in each bucket of struct tw_histogram that is not empty.");
	for (size_t k = 0; k < sizeof all / sizeof *all; k++)
		for (unsigned i = 0; i < TW_HISTOGRAM_BUCKETS; i++)
			if (all[k].histogram->buckets[i])
				fprintf(out,
					"tickwheel_cell{of=\"%s\",bucket=\"%u\"} %" PRIu64 "\n",
					all[k].of, i, all[k].histogram->buckets[i]);
}

/* ---------------------------------------------------------------------- all */

static void write_all(FILE *out, const struct reading *reading, bool live)
{
	const struct tw_service_histograms *h = &reading->histograms;
	head(out, "build_info", "gauge", "The version of the library.");
	fprintf(out, "tickwheel_build_info{version=\"%d.%d.%d\"} 1\n", TW_VERSION_MAJOR,
		TW_VERSION_MINOR, TW_VERSION_PATCH);
	write_ledger(out, &reading->stats);
	write_counters(out, &reading->stats);
	histogram(out, "lateness_seconds", "From a timer's tick to its hand-over.", &h->lateness);
	histogram(out, "wait_seconds", "From hand-over to the start of the callback.", &h->wait);
	histogram(out, "run_seconds", "Duration of callbacks.", &h->run);
	write_liveness(out, &reading->liveness);
	write_pool(out, &reading->pool, &reading->liveness);
	write_runs(out, reading);
	if (!live)
		return;
	write_ages(out, reading);
	write_groups(out, reading);
	write_cells(out, h);
}

int tw__prometheus_write(tw_service *service, FILE *out, bool live)
{
	struct reading *reading = calloc(1, sizeof *reading);
	if (!reading)
		return -ENOMEM;
	int r = read_service(service, reading, live);
	if (!r)
		write_all(out, reading, live);
	free(reading->runs);
	free(reading);
	return r ? r : ferror(out) ? -EIO : 0;
}

int tw_service_stats_prometheus(tw_service *service, FILE *out)
{
	int r = out ? tw__service_check(service) : tw__invalid("out is NULL");
	return r ? r : tw__prometheus_write(service, out, false);
}
