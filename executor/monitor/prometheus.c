/*
 * Writes a service's figures in Prometheus' text format, version 0.0.4, after it has read them all.
 * Times are seconds, written from integers, since printf has the locale's decimal point.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tickwheel/pool.h"
#include "tickwheel/prometheus.h"
#include "mpsc/base/reserve.h"
#include "mpsc/base/process.h"
#include "tickwheel/version.h"
#include "mpsc/base/histogram.h"
#include "mpsc/base/text.h"
#include "executor/base/living.h"
#include "wheel/service/parts.h"

/* Bounds of the histograms: 2^10 ns (about 1 us) to 2^36 ns (about 69 s). */
enum { FIRST_BOUND = 10, LAST_BOUND = 36, NUMBER_ROOM = 32 };

/* Objects, or runs under way, of one kind and name, added up. */
struct layer {
	struct tw__seen_object seen;
	const char *run; /* a run's name; NULL: an object */
	uint64_t objects;
};

/*
 * A figure whose name has "seconds" is a time. One whose name ends in "_total" is a counter, any
 * other a gauge. One whose name begins with "pool_" is left out for services without a pool.
 */
struct figure {
	const char *name, *help;
	size_t offset;
};

#define OF_LAYER(member) offsetof(struct layer, member)

static const struct figure layer_figures[] = {
    {"layer_objects", "Limiters, schedulers, semaphores and strands that exist.",
     OF_LAYER(objects)},
    {"layer_running", "Jobs, tasks and turns under way; permits that are out.",
     OF_LAYER(seen.figures.running)},
    {"layer_waiting", "Jobs, tasks, threads and functions that wait for their turn.",
     OF_LAYER(seen.figures.waiting)},
    {"layer_delayed", "Jobs that wait for a retry, and tasks that are not due.",
     OF_LAYER(seen.figures.delayed)},
    {"layer_rejected_total", "Submits refused.", OF_LAYER(seen.figures.rejected)},
    {"layer_retried_total", "Retries of jobs.", OF_LAYER(seen.figures.retried)},
    {"layer_timed_out_total", "Jobs that have timed out.", OF_LAYER(seen.figures.timed_out)},
    {"layer_started_total", "Attempts of jobs that have left the line.",
     OF_LAYER(seen.queue.count)},
    {"layer_queue_seconds_total", "How long these had waited in line.",
     OF_LAYER(seen.queue.sum_ns)},
    {"layer_ended_total", "Attempts of jobs that have ended.", OF_LAYER(seen.run.count)},
    {"layer_run_seconds_total", "How long these had run.", OF_LAYER(seen.run.sum_ns)},
};

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static uint64_t *figure_at(const void *from, const struct figure *figure)
{
	return (uint64_t *)((uintptr_t)from + figure->offset);
}

struct page {
	FILE *out;
	const char *service; /* value of the label; NULL: none */
	struct tw_service_stats stats;
	struct tw_service_histograms histograms;
	struct tw_service_liveness liveness;
	struct tw_pool_stats pool; /* size 0: the service has none */
	uint64_t pool_max_workers, pool_at_max;
	struct layer *layers; /* runs first */
	size_t runs, count, room;
	bool no_memory;
};

/* ------------------------------------------------------------------- reading */

static const char *name_of(const struct layer *layer)
{
	return layer->run ? layer->run : layer->seen.name;
}

/* Names that differ have labels that differ (tw__text_put): equal names are one sample. */
static int compare_layers(const void *a, const void *b)
{
	const struct layer *one = a, *other = b;
	int r = strcmp(one->seen.kind, other->seen.kind);
	return r ? r : strcmp(name_of(one), name_of(other));
}

static void add_up(struct page *page)
{
	struct layer *to = page->layers;
	if (!page->count)
		return;
	qsort(to, page->count, sizeof *to, compare_layers);
	for (struct layer *from = to + 1; from < page->layers + page->count; from++) {
		if (compare_layers(to, from)) {
			*++to = *from;
			continue;
		}
		for (size_t i = 0; i < COUNT_OF(layer_figures); i++)
			*figure_at(to, &layer_figures[i]) += *figure_at(from, &layer_figures[i]);
	}
	page->count = (size_t)(to + 1 - page->layers);
}

static void keep(struct page *page, const struct layer *layer)
{
	if (page->count == page->room) {
		add_up(page);
		size_t room = 2 * page->count + 64; /* for as many again as there are */
		if (room > page->room) {
			struct layer *layers = tw__alloc(room * sizeof *layers);
			page->no_memory |= !layers;
			if (!layers)
				return;
			if (page->count > 0)
				memcpy(layers, page->layers, page->count * sizeof *layers);
			tw__free(page->layers);
			page->layers = layers;
			page->room = room;
		}
	}
	page->layers[page->count++] = *layer;
}

static void keep_run(void *context, const struct tw__seen_run *run)
{
	keep(context,
	     &(struct layer){.seen.kind = "", .run = run->name ? run->name : "", .objects = 1});
}

static void keep_object(void *context, const struct tw__seen_object *seen)
{
	keep(context, &(struct layer){.seen = *seen, .objects = 1});
}

static int read_figures(tw_service *service, struct page *page)
{
	page->service = service->config.name;
	page->stats.size = sizeof page->stats;
	page->histograms.size = sizeof page->histograms;
	page->liveness.size = sizeof page->liveness;
	page->pool.size = sizeof page->pool;
	int r = tw_service_stats(service, &page->stats);
	if (!r)
		r = tw_service_histograms(service, &page->histograms);
	if (!r)
		r = tw_service_liveness(service, &page->liveness);
	if (!r)
		r = tw_service_pool_stats(service, &page->pool);
	if (r && r != -ENOENT)
		return r;
	if (r)
		page->pool.size = 0;
	page->pool_max_workers = page->liveness.pool_max_workers;
	page->pool_at_max = page->liveness.pool_at_max;
	tw__runs_visit(service, page->liveness.now_ns, keep_run, page);
	tw__living_visit(service, keep_object, page);
	add_up(page);
	while (page->runs < page->count && page->layers[page->runs].run)
		page->runs++;
	return page->no_memory ? -ENOMEM : 0;
}

/* ------------------------------------------------------------------- samples */

/* type NULL: a counter or a gauge, as the name says. */
static void write_head(const struct page *page, const char *name, const char *type,
		       const char *help)
{
	const char *end = strstr(name, "_total");
	if (!type)
		type = end && !end[sizeof "_total" - 1] ? "counter" : "gauge";
	fprintf(page->out, "# HELP tickwheel_%s %s\n# TYPE tickwheel_%s %s\n", name, help, name,
		type);
}

/* A number, or with is_time nanoseconds as seconds. */
static const char *as_text(char text[NUMBER_ROOM], uint64_t figure, bool is_time)
{
	const uint64_t second = 1000000000;
	if (is_time)
		snprintf(text, NUMBER_ROOM, "%" PRIu64 ".%09" PRIu64, figure / second,
			 figure % second);
	else
		snprintf(text, NUMBER_ROOM, "%" PRIu64, figure);
	return text;
}

struct label {
	const char *name, *value;
};

/* After the service's label, if it has a name, come the others; the last one is empty. */
static void write_sample(const struct page *page, const char *name, const struct label *labels,
			 uint64_t figure, bool is_time)
{
	char text[NUMBER_ROOM], before = '{';
	struct label service = {"service", page->service};
	fprintf(page->out, "tickwheel_%s", name);
	for (const struct label *label = page->service ? &service : labels; label->name;
	     label = label == &service ? labels : label + 1, before = ',') {
		fprintf(page->out, "%c%s=\"", before, label->name);
		tw__text_put(page->out, label->value, TW__TEXT_LABEL);
		fputc('"', page->out);
	}
	fprintf(page->out, "%s %s\n", before == ',' ? "}" : "", as_text(text, figure, is_time));
}

static const struct label no_label[] = {{NULL, NULL}};

#define LABEL(name, value) ((const struct label[]){{name, value}, {NULL, NULL}})

/* ------------------------------------------------------------------- figures */

#define OF(member) offsetof(struct page, member)

/* Of the page; or a sample of each of n layers. */
static void write_figures(const struct page *page, const struct figure *figures, size_t count,
			  const struct layer *layers, size_t n)
{
	for (const struct figure *f = figures; f < figures + count; f++) {
		bool is_time = strstr(f->name, "seconds") != NULL;
		if (strncmp(f->name, "pool_", 5) == 0 && !page->pool.size)
			continue;
		write_head(page, f->name, NULL, f->help);
		if (!layers)
			write_sample(page, f->name, no_label, *figure_at(page, f), is_time);
		for (size_t i = 0; i < n; i++) {
			const struct label labels[] = {{"kind", layers[i].seen.kind},
						       {"name", layers[i].seen.name},
						       {NULL, NULL}};
			write_sample(page, f->name, labels, *figure_at(&layers[i], f), is_time);
		}
	}
}

static void write_histogram(const struct page *page, const char *name, const char *help,
			    const struct tw_histogram *histogram)
{
	char part[64], bound[NUMBER_ROOM];
	write_head(page, name, "histogram", help);
	snprintf(part, sizeof part, "%s_bucket", name);
	for (unsigned i = FIRST_BOUND; i <= LAST_BOUND; i++) {
		uint64_t bound_ns = UINT64_C(1) << i;
		write_sample(page, part, LABEL("le", as_text(bound, bound_ns, true)),
			     tw__histogram_count_upto(histogram, bound_ns), false);
	}
	write_sample(page, part, LABEL("le", "+Inf"), histogram->count, false);
	snprintf(part, sizeof part, "%s_sum", name);
	write_sample(page, part, no_label, histogram->sum_ns, true);
	snprintf(part, sizeof part, "%s_count", name);
	write_sample(page, part, no_label, histogram->count, false);
	snprintf(part, sizeof part, "max_%s", name);
	write_head(page, part, NULL, "The longest of these since the service was created.");
	write_sample(page, part, no_label, histogram->max_ns, true);
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

static void write_page(const struct page *page)
{
	const struct tw_service_stats *stats = &page->stats;
	const struct tw_service_histograms *histograms = &page->histograms;
	const char *name = "build_info";
	char version[NUMBER_ROOM];
	snprintf(version, sizeof version, "%d.%d.%d", TW_VERSION_MAJOR, TW_VERSION_MINOR,
		 TW_VERSION_PATCH);
	write_head(page, name, NULL, "The version of the library.");
	write_sample(page, name, LABEL("version", version), 1, false);
	name = "timers_ended_total";
	write_head(page, name, NULL, "Timers that have ended, by fate.");
	write_sample(page, name, LABEL("fate", "fired"), stats->fired, false);
	write_sample(page, name, LABEL("fate", "cancelled"), stats->cancelled, false);
	write_sample(page, name, LABEL("fate", "dropped"), stats->dropped, false);
	write_figures(page, counts, COUNT_OF(counts), NULL, 0);
	write_histogram(page, "lateness_seconds", "From a timer's tick to its hand-over.",
			&histograms->lateness);
	write_histogram(page, "wait_seconds", "From hand-over to the start of the callback.",
			&histograms->wait);
	write_histogram(page, "run_seconds", "Duration of callbacks.", &histograms->run);
	write_figures(page, states, COUNT_OF(states), NULL, 0);
	name = "running_by_name";
	if (page->runs)
		write_head(page, name, NULL, "User functions under way, by name.");
	for (size_t n = 0; n < page->runs; n++)
		write_sample(page, name, LABEL("name", page->layers[n].run),
			     page->layers[n].objects, false);
	if (page->runs < page->count)
		write_figures(page, layer_figures, COUNT_OF(layer_figures),
			      page->layers + page->runs, page->count - page->runs);
}

int tw_service_stats_prometheus(tw_service *service, FILE *out)
{
	TW__UNCANCELLED;
	int r = out ? tw__service_check(service) : tw__invalid("out is NULL");
	if (r)
		return r;
	struct page *page = tw__alloc_zeroed(1, sizeof *page);
	if (!page)
		return -ENOMEM;
	page->out = out;
	r = read_figures(service, page);
	if (!r)
		write_page(page);
	tw__free(page->layers);
	tw__free(page);
	return r ? r : ferror(out) ? -EIO : 0;
}
