/*
 * Written in two passes over the same sections: the first describes every plot to gnuplot, the
 * second writes the page around what came back. The plots are numbered in the order in which both
 * passes meet them.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/html.h"
#include "bench/page.h"
#include "bench/page_head.h"
#include "bench/plot.h"
#include "bench/replace.h"
#include "bench/table.h"

/* Of more sizes than this not all get bars. A curve has three points or more. */
enum { MOST_BARS = 4, LEAST_CURVE = 3, MOST_VALUES = 64 };

struct page {
	FILE *out; /* NULL in the first pass */
	const struct machine *machine;
	const struct results *results;
	struct plots plots;
	size_t plot; /* the next one's number, in the second pass */
	bool drawn;
	const struct cell **cells; /* room for a view's */
};

/* ---- choosing what is seen */

struct choice {
	const struct workload *workload;
	const char *figure;
	uint32_t n;
	unsigned threads; /* 0: all */
	bool every_n, baseline;
};

static bool is_chosen(const struct choice *choice, const struct cell *cell)
{
	return cell->workload == choice->workload && cell_stands(cell) &&
	       cell_figure(cell, choice->figure) && (choice->every_n || cell->n == choice->n) &&
	       (!choice->threads || cell->threads == choice->threads) &&
	       (choice->baseline || strcmp(cell->kind, "baseline") != 0);
}

static size_t choose(struct page *page, const struct choice *choice)
{
	size_t count = 0;
	for (size_t i = 0; i < page->results->count; i++)
		if (is_chosen(choice, page->results->cells[i]))
			page->cells[count++] = page->results->cells[i];
	return count;
}

/* The range of a figure over the whole workload, so that all its plots have the same axis. */
static void find_range(const struct page *page, const struct workload *workload, const char *figure,
		       double unit, double *least, double *most)
{
	const struct choice all = {
	    .workload = workload, .figure = figure, .every_n = true, .baseline = true};
	*least = INFINITY;
	*most = 0;
	for (size_t i = 0; i < page->results->count; i++) {
		if (!is_chosen(&all, page->results->cells[i]))
			continue;
		struct summary s = figure_summary(cell_figure(page->results->cells[i], figure));
		*least = s.min > 0 ? fmin(*least, s.min / unit) : *least;
		*most = fmax(*most, s.max / unit);
	}
}

static unsigned distinct(const struct page *page, const struct workload *workload, bool threads,
			 uint32_t *values, unsigned room)
{
	unsigned count = 0;
	for (size_t i = 0; i < page->results->count; i++) {
		const struct cell *cell = page->results->cells[i];
		uint32_t value = threads ? cell->threads : cell->n;
		bool known = cell->workload != workload || !cell->finished;
		for (unsigned k = 0; k < count; k++)
			known |= values[k] == value;
		if (!known && count < room)
			values[count++] = value;
	}
	return count;
}

static bool is_power_of_ten(uint32_t n)
{
	while (n && n % 10 == 0)
		n /= 10;
	return n == 1;
}

/* Of many sizes some are enough, the curve has all. */
static bool is_shown(const uint32_t *sizes, unsigned count, unsigned i)
{
	return count <= MOST_BARS || is_power_of_ten(sizes[i]) || i == 0 || i == count / 2 ||
	       i + 1 == count;
}

/* ---- writing */

static void write_caption(const struct page *page, const struct choice *choice, const char *what)
{
	char size[32];
	fprintf(page->out, "<figure><figcaption><b>%s", choice->workload->name);
	if (!choice->every_n)
		fprintf(page->out, " &#183; %s",
			size_text(choice->workload, choice->n, size, sizeof size));
	if (choice->threads && choice->workload->many_threads)
		fprintf(page->out, " &#183; %u thread%s", choice->threads,
			choice->threads == 1 ? "" : "s");
	fputs("</b> ", page->out);
	write_text(page->out, what);
	fputs("</figcaption>\n", page->out);
}

enum look { BARS, LATENESS, OVER_N, OVER_THREADS };

/*
 * CPU time beside wall time, both of an operation. NULL: the bars are something else, or it was not
 * measured.
 */
static const struct column *cpu_column(const struct workload *workload)
{
	const struct column *first = workload->columns, *second = first + 1;
	bool both = second->figure && strcmp(first->figure, "ns_per_op") == 0 &&
		    strcmp(second->figure, "cpu_ns_per_op") == 0 && first->unit == second->unit;
	return both ? second : NULL;
}

static void widen(const struct page *page, const struct workload *workload,
		  const struct column *column, struct view *view)
{
	double least, most;
	if (!column)
		return;
	find_range(page, workload, column->figure, column->unit, &least, &most);
	view->least = fmin(view->least, least);
	view->most = fmax(view->most, most);
}

static void describe_plot(struct page *page, const struct choice *choice,
			  const struct column *column, enum look look, size_t count)
{
	static const struct column shortest = {.figure = "lateness_p50_ns", .unit = 1e3};
	struct view view = {
	    .cells = page->cells, .count = count, .column = column, .least = INFINITY};
	widen(page, choice->workload, column, &view);
	view.beside = look == BARS ? cpu_column(choice->workload) : NULL;
	widen(page, choice->workload, view.beside, &view);
	widen(page, choice->workload, look == LATENESS ? &shortest : NULL, &view);
	if (view.most <= 0) /* nothing but zeros */
		view.least = view.most = 1;
	if (look == BARS)
		plot_bars(&page->plots, &view);
	else if (look == LATENESS)
		plot_lateness(&page->plots, &view);
	else
		plot_growth(&page->plots, &view, look == OVER_THREADS);
}

static void show_plot(struct page *page, const struct choice *choice, const struct column *column,
		      enum look look)
{
	static const char *const whats[] = {"", "lateness, \u00b5s", " over n", " over threads"};
	char what[64];
	size_t count = choose(page, choice);
	if (count == 0)
		return;
	if (!page->out) {
		describe_plot(page, choice, column, look, count);
		return;
	}
	if (!page->drawn)
		return;
	snprintf(what, sizeof what, "%s%s", look == LATENESS ? "" : column->heading, whats[look]);
	write_caption(page, choice, what);
	plots_write(page->out, &page->plots, page->plot++);
	fputs("</figure>\n", page->out);
}

/* A plot for each n and number of threads. */
static void show_each(struct page *page, const struct workload *workload,
		      const struct column *column, enum look look)
{
	uint32_t sizes[MOST_VALUES], threads[MOST_VALUES];
	unsigned size_count = distinct(page, workload, false, sizes, MOST_VALUES);
	unsigned thread_count = distinct(page, workload, true, threads, MOST_VALUES);
	for (unsigned s = 0; s < size_count; s++) {
		bool seen = is_shown(sizes, size_count, s);
		for (unsigned t = 0; seen && t < thread_count; t++) {
			struct choice choice = {.workload = workload,
						.figure = column->figure,
						.n = sizes[s],
						.threads = threads[t],
						.baseline = look == LATENESS};
			show_plot(page, &choice, column, look);
		}
	}
}

static void show_bars(struct page *page, const struct workload *workload)
{
	static const struct column lateness = {.figure = "lateness_max_ns", .unit = 1e3};
	show_each(page, workload, workload->columns, BARS);
	show_each(page, workload, &lateness, LATENESS);
}

static void show_curves(struct page *page, const struct workload *workload)
{
	uint32_t sizes[MOST_VALUES], threads[MOST_VALUES];
	unsigned size_count = distinct(page, workload, false, sizes, MOST_VALUES);
	unsigned thread_count = distinct(page, workload, true, threads, MOST_VALUES);
	struct choice choice = {
	    .workload = workload, .figure = workload->columns[0].figure, .every_n = true};
	for (unsigned t = 0; size_count >= LEAST_CURVE && !workload->size_label && t < thread_count;
	     t++) {
		choice.threads = threads[t];
		show_plot(page, &choice, workload->columns, OVER_N);
	}
	choice = (struct choice){.workload = workload, .figure = workload->columns[0].figure};
	for (unsigned s = 0; thread_count >= LEAST_CURVE && s < size_count; s++) {
		bool seen = is_shown(sizes, size_count, s);
		choice.n = sizes[s];
		if (seen)
			show_plot(page, &choice, workload->columns, OVER_THREADS);
	}
}

static void write_mark(FILE *out, const struct series *s)
{
	fprintf(out,
		"<li><svg viewBox=\"0 0 34 12\"><path d=\"M0,6H34\" fill=\"none\" stroke=\"rgb(  "
		"0,   0, %3u)\" "
		"stroke-width=\"%s\"%s/><use xlink:href=\"#gpPt%u\" transform=\"translate(17,6) "
		"scale(3)\" "
		"color=\"rgb(  0,   0, %3u)\"/></svg>%s</li>\n",
		s->tint, s->ours ? "2.5" : "1.5", s->dashed ? " stroke-dasharray=\"4 3\"" : "",
		s->mark - 1, s->tint, s->candidate);
}

static bool appears(const struct page *page, const struct workload *workload,
		    const struct series *series)
{
	for (size_t i = 0; i < page->results->count; i++) {
		const struct cell *cell = page->results->cells[i];
		if (cell->workload == workload && cell_stands(cell) &&
		    strcmp(cell->candidate, series->candidate) == 0)
			return true;
	}
	return false;
}

/* Names beside the lines would lie on each other. */
static void write_series_key(const struct page *page, const struct workload *workload)
{
	fputs("<ul class=\"key\">\n", page->out);
	for (size_t i = 0; i < page->plots.series_count; i++)
		if (appears(page, workload, &page->plots.series[i]))
			write_mark(page->out, &page->plots.series[i]);
	fputs("</ul>\n", page->out);
}

static bool has_curves(const struct page *page, const struct workload *workload)
{
	uint32_t values[LEAST_CURVE];
	return (!workload->size_label &&
		distinct(page, workload, false, values, LEAST_CURVE) == LEAST_CURVE) ||
	       distinct(page, workload, true, values, LEAST_CURVE) == LEAST_CURVE;
}

static void write_table(FILE *out, const struct table *table)
{
	fputs("<div class=\"wide\"><table>\n", out);
	for (size_t r = 0; r < table->row_count; r++) {
		const struct table_row *row = &table->rows[r];
		fprintf(out, "<tr class=\"%s%s\">", row->begins_group ? "group " : "",
			row->ours ? "ours" : "");
		for (unsigned c = 0; c < table->column_count; c++) {
			fprintf(out, "<%s%s>", r ? "td" : "th",
				c < TABLE_LEFT ? " class=\"word\"" : "");
			write_text(out, row->texts[c]);
		}
		fputs("</tr>\n", out);
	}
	fputs("</table></div>\n", out);
}

static void show_table(const struct page *page, const struct workload *workload)
{
	struct table table;
	if (!page->out)
		return;
	table_make(&table, page->results, workload, true);
	fputs("<details><summary>All figures: median (min..max)</summary>\n", page->out);
	write_table(page->out, &table);
	fputs("</details>\n", page->out);
	table_free(&table);
}

static void show_workload(struct page *page, const struct workload *workload)
{
	FILE *out = page->out;
	if (out) {
		fprintf(out, "<h2><b>%s</b>", workload->name);
		write_text(out, workload->title);
		fputs("</h2>\n<div class=\"plots\">\n", out);
	}
	show_bars(page, workload);
	if (out)
		fputs("</div>\n", out);
	if (has_curves(page, workload)) {
		if (out && page->drawn)
			write_series_key(page, workload);
		if (out)
			fputs("<div class=\"plots\">\n", out);
		show_curves(page, workload);
		if (out)
			fputs("</div>\n", out);
	}
	show_table(page, workload);
}

static void show_workloads(struct page *page)
{
	const struct results *results = page->results;
	for (size_t i = 0; i < results->count; i++) {
		bool first = results->cells[i]->finished;
		for (size_t k = 0; first && k < i; k++)
			first = results->cells[k]->workload != results->cells[i]->workload ||
				!results->cells[k]->finished;
		if (first)
			show_workload(page, results->cells[i]->workload);
	}
}

int page_write(const char *path, const struct machine *machine, const struct results *results)
{
	struct replacement replacement;
	struct page page = {.machine = machine, .results = results};
	if (replace_begin(&replacement, path) < 0)
		return -1;
	page.cells = calloc(results->count + 1, sizeof *page.cells);
	if (!page.cells)
		abort();
	plots_begin(&page.plots, results);
	if (page.plots.script)
		show_workloads(&page);
	page.drawn = plots_draw(&page.plots);
	page.out = replacement.file;
	page_head_write(page.out, machine, results, page.drawn);
	show_workloads(&page);
	fputs("</body></html>\n", page.out);
	plots_end(&page.plots);
	free(page.cells);
	return replace_end(&replacement);
}
