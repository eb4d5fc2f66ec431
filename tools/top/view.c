#include "tools/top/view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LABEL = 10 }; /* columns of the names at the left */

/* --------------------------------------------------------------------- numbers */

enum { NUMBER = 16 };

/* 999, 1.2k, 34k, 5.6M */
static const char *short_number(char out[NUMBER], double value)
{
	static const char units[] = " kMGTP";
	unsigned unit = 0;
	for (; value >= 999.5 && unit + 2 < sizeof units; unit++)
		value /= 1000;
	if (unit == 0)
		snprintf(out, NUMBER, "%.0f", value);
	else
		snprintf(out, NUMBER, "%.*f%c", value < 9.95 ? 1 : 0, value, units[unit]);
	return out;
}

/* 12 us, 3.4 ms, 5.6 s, 2 min */
static const char *short_time(char out[NUMBER], double ns)
{
	if (ns < 999.5e3)
		snprintf(out, NUMBER, "%.0f us", ns / 1e3);
	else if (ns < 999.5e6)
		snprintf(out, NUMBER, "%.*f ms", ns < 99.5e6 ? 1 : 0, ns / 1e6);
	else if (ns < 120e9)
		snprintf(out, NUMBER, "%.1f s", ns / 1e9);
	else if (ns < 7200e9)
		snprintf(out, NUMBER, "%.0f min", ns / 60e9);
	else
		snprintf(out, NUMBER, "%.0f h", ns / 3600e9);
	return out;
}

/* ----------------------------------------------------------------------- pages */

/* What was counted between the pages. */
static struct tw_histogram window(const struct tw_histogram *now, const struct tw_histogram *before)
{
	struct tw_histogram window = *now;
	if (tw_histogram_subtract(&window, before))
		window = *now; /* another service has taken the place */
	return window;
}

static void remember_lateness(struct view *view)
{
	struct tw_histogram late = window(&view->now.lateness, &view->before.lateness);
	if (view->history == VIEW_HISTORY)
		memmove(view->late_ns, view->late_ns + 1,
			(VIEW_HISTORY - 1) * sizeof *view->late_ns);
	else
		view->history++;
	view->late_ns[view->history - 1] = tw_histogram_percentile(&late, 0.99);
}

void view_take(struct view *view, struct page *page)
{
	page_free(&view->before);
	view->has_before = view->now.text != NULL;
	view->before = view->now;
	view->now = *page;
	if (view->has_before)
		remember_lateness(view);
}

void view_free(struct view *view)
{
	page_free(&view->before);
	page_free(&view->now);
	*view = (struct view){.pid = view->pid};
}

static double value(const struct view *view, const char *name)
{
	return page_value(&view->now, name, NULL);
}

/* Per second, between the pages. */
static double rate(const struct view *view, const char *name, const char *label)
{
	double seconds = (double)(view->now.read_ns - view->before.read_ns) / 1e9;
	double more = page_value(&view->now, name, label) - page_value(&view->before, name, label);
	return view->has_before && seconds > 0 && more > 0 ? more / seconds : 0;
}

/* ----------------------------------------------------------------------- lines */

static void begin(struct screen *screen, const char *label)
{
	screen_line(screen);
	screen_field(screen, label, LABEL);
}

static void put_value(const struct view *view, struct screen *screen, const char *name,
		      const char *text)
{
	char number[NUMBER];
	screen_put(screen, "%s%s %s", screen->width > LABEL ? "  " : "",
		   short_number(number, value(view, name)), text);
}

static void put_rate(const struct view *view, struct screen *screen, const char *text,
		     const char *name, const char *label)
{
	char number[NUMBER];
	screen_put(screen, "%s%s %s/s", screen->width > LABEL ? "  " : "", text,
		   view->has_before ? short_number(number, rate(view, name, label)) : "-");
}

static void draw_title(const struct view *view, struct screen *screen)
{
	char version[32] = "";
	for (size_t i = 0; i < view->now.count; i++)
		if (strcmp(view->now.samples[i].name, "build_info") == 0)
			page_label(&view->now.samples[i], "version", version, sizeof version);
	screen_line(screen);
	screen_put(screen, "tickwheel-top  %s (%d)  service \"%s\"  tickwheel %s", view->command,
		   view->pid, view->now.service, version);
}

static void draw_timers(const struct view *view, struct screen *screen)
{
	begin(screen, "timers");
	put_value(view, screen, "timers_pending", "pending");
	put_value(view, screen, "overdue_timers", "overdue");
	put_value(view, screen, "groups", "groups");
	put_value(view, screen, "group_members", "members");
	put_value(view, screen, "memory_bytes", "bytes");
	begin(screen, "rates");
	put_rate(view, screen, "scheduled", "timers_scheduled_total", NULL);
	put_rate(view, screen, "fired", "timers_ended_total", "fate=\"fired\"");
	put_rate(view, screen, "cancelled", "timers_ended_total", "fate=\"cancelled\"");
	put_rate(view, screen, "moved", "resets_total", NULL);
	put_rate(view, screen, "runs", "runs_total", NULL);
}

static void draw_driver(const struct view *view, struct screen *screen)
{
	char time[NUMBER];
	begin(screen, "driver");
	put_rate(view, screen, "wake-ups", "wakeups_total", NULL);
	put_rate(view, screen, "polls", "turns_total", NULL);
	screen_put(screen, "  CPU %.1f %%", 100 * rate(view, "tick_cpu_seconds_total", NULL));
	screen_put(screen, "  late %s", short_time(time, 1e9 * value(view, "driver_late_seconds")));
	put_value(view, screen, "threads", "threads");
}

static void draw_workers(const struct view *view, struct screen *screen)
{
	enum { BAR = 20 };
	double workers = value(view, "pool_workers"), busy = value(view, "pool_busy_workers");
	begin(screen, "workers");
	if (workers <= 0) {
		screen_put(screen, "no pool");
		return;
	}
	unsigned long full = (unsigned long)(busy / workers * BAR + 0.5);
	screen_put(screen, "[");
	for (unsigned long i = 0; i < BAR; i++)
		screen_put(screen, "%s", i < full ? "|" : ".");
	screen_put(screen, "]");
	screen_put(screen, " %.0f of %.0f busy, at most %.0f", busy, workers,
		   value(view, "pool_max_workers"));
	put_value(view, screen, "pool_queued", "queued");
	if (value(view, "pool_at_max") > 0)
		screen_put(screen, "  FULL");
}

/* --------------------------------------------------------------------- latency */

static const char *bar(const struct screen *screen, unsigned level)
{
	static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char *const ascii[] = {" ", ".", ":", "-", "=", "+", "*", "#", "@"};
	return (screen->utf8 ? blocks : ascii)[level];
}

/* The history at the right end of the line, scaled to its highest value. */
static void draw_sparkline(const struct view *view, struct screen *screen)
{
	char time[NUMBER];
	uint64_t most = 1;
	unsigned from = screen->width + 2,
		 room = screen->columns > from + 12 ? screen->columns - from - 12 : 0;
	unsigned n = view->history < room ? view->history : room;
	const uint64_t *late_ns = view->late_ns + view->history - n;
	for (unsigned i = 0; i < n; i++)
		most = late_ns[i] > most ? late_ns[i] : most;
	screen_put(screen, "  ");
	for (unsigned i = 0; i < n; i++)
		screen_put(
		    screen, "%s",
		    bar(screen, late_ns[i] ? 1 + (unsigned)((late_ns[i] - 1) * 8 / most) : 0));
	if (most > 1)
		screen_put(screen, " <= %s", short_time(time, (double)most));
}

static void draw_latency(const struct view *view, struct screen *screen, const char *label,
			 const struct tw_histogram *now, const struct tw_histogram *before)
{
	static const double shares[] = {0.5, 0.99, 1};
	char time[NUMBER];
	struct tw_histogram seen = view->has_before ? window(now, before) : *now;
	begin(screen, label);
	for (unsigned i = 0; i < 3; i++)
		screen_field(
		    screen,
		    seen.count ? short_time(time, (double)tw_histogram_percentile(&seen, shares[i]))
			       : "-",
		    10);
}

static void draw_latencies(const struct view *view, struct screen *screen)
{
	screen_line(screen);
	begin(screen, "");
	screen_field(screen, "p50", 10);
	screen_field(screen, "p99", 10);
	screen_field(screen, "max", 10);
	screen_put(screen, "  lateness, p99 of each interval");
	draw_latency(view, screen, "lateness", &view->now.lateness, &view->before.lateness);
	draw_sparkline(view, screen);
	draw_latency(view, screen, "wait", &view->now.wait, &view->before.wait);
	draw_latency(view, screen, "run", &view->now.run, &view->before.run);
}

/* ------------------------------------------------------------------------ runs */

static int older_first(const void *a, const void *b)
{
	const struct page_sample *x = *(const struct page_sample *const *)a,
				 *y = *(const struct page_sample *const *)b;
	return (x->value < y->value) - (x->value > y->value);
}

/* Columns of a run; its function has the rest. */
enum { AGE = 12, KIND = 16, THREAD = 9, NAME = 22 };

/* A wider screen gives half of what it has more to the names. */
static unsigned name_width(const struct screen *screen)
{
	return screen->columns > 80 ? NAME + (screen->columns - 80) / 2 : NAME;
}

static void put_label(struct screen *screen, const struct page_sample *run, const char *label,
		      unsigned width)
{
	char text[PAGE_NAME];
	page_label(run, label, text, sizeof text);
	screen_field(screen, text, width - 1);
	screen_put(screen, " ");
}

static void draw_run(struct screen *screen, const struct page_sample *run)
{
	char time[NUMBER];
	screen_line(screen);
	screen_put(screen, "%9s", short_time(time, 1e9 * run->value));
	screen_to(screen, AGE);
	put_label(screen, run, "kind", KIND);
	put_label(screen, run, "thread", THREAD);
	put_label(screen, run, "name", name_width(screen));
	put_label(screen, run, "fn", PAGE_NAME);
}

static void draw_head_of_runs(const struct view *view, struct screen *screen)
{
	char count[32];
	snprintf(count, sizeof count, "%.0f running", value(view, "running"));
	screen_line(screen);
	screen_line(screen);
	screen_field(screen, count, AGE);
	screen_field(screen, "kind", KIND);
	screen_field(screen, "thread", THREAD);
	screen_field(screen, "name", name_width(screen));
	screen_put(screen, "function");
}

static size_t rows_left(const struct screen *screen)
{
	return screen->rows > screen->count ? screen->rows - screen->count : 0;
}

static size_t count_samples(const struct view *view, const char *name)
{
	size_t n = 0;
	for (size_t i = 0; i < view->now.count; i++)
		n += strcmp(view->now.samples[i].name, name) == 0;
	return n;
}

/* Rows that the groups need: on a small screen for the three largest; on a tiny one none. */
static size_t rows_for_groups(const struct view *view, const struct screen *screen)
{
	enum { HEAD = 2, LEAST = 3 };
	size_t groups = count_samples(view, "largest_group_members");
	size_t needed = HEAD + (groups < LEAST ? groups : LEAST);
	return groups && rows_left(screen) >= needed + LEAST ? needed : 0;
}

/* Those that began first, as many as there are rows; the last row says how many more there are. */
static void draw_runs(const struct view *view, struct screen *screen)
{
	size_t n = 0;
	const struct page_sample **runs = calloc(view->now.count + 1, sizeof *runs);
	for (size_t i = 0; runs && i < view->now.count; i++)
		if (strcmp(view->now.samples[i].name, "run_age_seconds") == 0)
			runs[n++] = &view->now.samples[i];
	if (runs)
		qsort(runs, n, sizeof *runs, older_first);
	draw_head_of_runs(view, screen);
	size_t room = rows_left(screen) - rows_for_groups(view, screen);
	size_t drawn = n <= room ? n : room ? room - 1 : 0;
	for (size_t i = 0; i < drawn; i++)
		draw_run(screen, runs[i]);
	if (drawn < n) {
		screen_line(screen);
		screen_put(screen, "and %zu more", n - drawn);
	}
	free(runs);
}

/* ---------------------------------------------------------------------- groups */

/* Columns of a group; the name and the function are where those of a run are. */
enum { GROUP = AGE, MEMBERS = 8, RUNNING = 8, DUE = 9 };

static double value_of_group(const struct view *view, const char *name,
			     const struct page_sample *group, bool *known)
{
	char index[16], label[32];
	page_label(group, "group", index, sizeof index);
	snprintf(label, sizeof label, "group=\"%s\"", index);
	return page_find(&view->now, name, label, known);
}

static void draw_group(const struct view *view, struct screen *screen,
		       const struct page_sample *group)
{
	char number[NUMBER], state[16];
	bool known;
	page_label(group, "state", state, sizeof state);
	screen_line(screen);
	screen_put(screen, "%9s", strcmp(state, "closed") == 0 ? "closed" : "");
	screen_to(screen, GROUP);
	screen_field(screen, short_number(number, group->value), MEMBERS);
	double running = value_of_group(view, "largest_group_running", group, &known);
	screen_field(screen, short_number(number, running), RUNNING);
	double due = value_of_group(view, "largest_group_due_seconds", group, &known);
	screen_field(screen, known ? short_time(number, 1e9 * due) : "-", DUE);
	put_label(screen, group, "name", name_width(screen));
	put_label(screen, group, "fn", PAGE_NAME);
}

/* The largest first, as many as there are rows. The page has them in that order. */
static void draw_groups(const struct view *view, struct screen *screen)
{
	char count[32], number[NUMBER];
	if (count_samples(view, "largest_group_members") == 0 || rows_left(screen) < 3)
		return;
	snprintf(count, sizeof count, "%s groups", short_number(number, value(view, "groups")));
	screen_line(screen);
	screen_line(screen);
	screen_field(screen, count, GROUP);
	screen_field(screen, "members", MEMBERS);
	screen_field(screen, "running", RUNNING);
	screen_field(screen, "next due", DUE);
	screen_field(screen, "name", name_width(screen));
	screen_put(screen, "function");
	for (size_t i = 0; i < view->now.count && rows_left(screen); i++)
		if (strcmp(view->now.samples[i].name, "largest_group_members") == 0)
			draw_group(view, screen, &view->now.samples[i]);
}

void view_draw(const struct view *view, struct screen *screen)
{
	draw_title(view, screen);
	screen_line(screen);
	draw_timers(view, screen);
	draw_driver(view, screen);
	draw_workers(view, screen);
	draw_latencies(view, screen);
	draw_runs(view, screen);
	draw_groups(view, screen);
}
