/*
 * Written in two passes over the same sections: the first describes every plot to gnuplot, the
 * second writes the page around what came back. The plots are numbered in the order in which both
 * passes meet them.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/page.h"
#include "bench/page_style.h"
#include "bench/plot.h"
#include "bench/replace.h"
#include "bench/summary.h"
#include "bench/table.h"
#include "bench/targets.h"

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

static void write_text(FILE *out, const char *text)
{
	for (; *text; text++)
		if (strchr("<>&\"", *text))
			fprintf(out, "&#%d;", *text);
		else
			fputc(*text, out);
}

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

/* ---- the head */

static void write_tint(FILE *out, unsigned tint, const char *variable, unsigned number)
{
	fprintf(out,
		"[stroke=\"rgb(  0,   0, %3u)\"]{stroke:var(--%s%u)}[fill=\"rgb(  0,   0, "
		"%3u)\"]{fill:var(--%s%u)}"
		"[color=\"rgb(  0,   0, %3u)\"]{color:var(--%s%u)}\n",
		tint, variable, number, tint, variable, number, tint, variable, number);
}

static void write_style(FILE *out)
{
	fputs("<style>\n", out);
	fputs(page_colors, out);
	fputs(page_layout, out);
	fputs(page_plots, out);
	for (unsigned tint = TINT_OURS; tint <= TINT_LINE; tint++)
		write_tint(out, tint, "t", tint);
	for (unsigned i = 0; i < MAX_FAMILIES; i++)
		write_tint(out, TINT_SERIES + i, "s", i);
	fputs("</style>\n", out);
}

static void write_term(FILE *out, const char *term, const char *text)
{
	fprintf(out, "<dt>%s<dd>", term);
	write_text(out, text);
	fputc('\n', out);
}

static void write_machine(FILE *out, const struct machine *machine, const struct occasion *occasion)
{
	fputs("<dl>\n", out);
	write_term(out, "processor", machine->cpu);
	fprintf(out, "<dt>cores<dd>%u\n", machine->cores);
	write_term(out, "compiler", machine->compiler);
	fprintf(out, "<dt>commit<dd>%.12s", machine->commit);
	write_text(out, strstr(machine->commit, "-dirty") ? " with changes\n" : "\n");
	fprintf(out,
		"<dt>clock reading<dd>%.1f ns <small class=\"soft\">(%.0f where the aims come "
		"from)</small>\n",
		machine->clock_ns, REFERENCE_CLOCK_NS);
	fprintf(out,
		"<dt>compare-and-swap<dd>%.1f ns <small class=\"soft\">(%.1f there), "
		"uncontended</small>\n",
		machine->cas_ns, REFERENCE_CAS_NS);
	if (machine->first_touch_ns > 0)
		fprintf(out,
			"<dt>first touch<dd>%.0f ns a page of 4 KiB; in no figure but memory\n",
			machine->first_touch_ns);
	if (occasion->when[0]) {
		write_term(out, "when", occasion->when);
		write_term(out, "run", occasion->mode);
		fprintf(
		    out,
		    "(%.0f s%s); meanwhile others used %.1f s of CPU time, the hypervisor %.1f s\n",
		    occasion->took_s,
		    occasion->complete ? "" : ", <b class=\"bad\">interrupted</b>",
		    occasion->others_cpu_s, occasion->stolen_s);
	}
	fputs("</dl>\n", out);
}

static void write_failures(FILE *out, const struct results *results)
{
	for (size_t i = 0; i < results->count; i++) {
		const struct cell *cell = results->cells[i];
		if (!cell->trouble[0])
			continue;
		fprintf(out,
			"<p class=\"bad\">FAILED: %s %s n=%u threads=%u: ", cell->workload->name,
			cell->candidate, cell->n, cell->threads);
		write_text(out, cell->trouble);
		fputs("</p>\n", out);
	}
}

static void write_head(const struct page *page)
{
	FILE *out = page->out;
	fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
	      "<title>tickwheel: timers compared</title>\n",
	      out);
	write_style(out);
	fputs("</head><body>\n<h1>Timers compared on this machine</h1>\n<p "
	      "class=\"soft\">tickwheel's bench: the same "
	      "work "
	      "on each candidate, side by side in one run, every candidate checked: all timers "
	      "ran, none early, "
	      "cancelled "
	      "ones "
	      "never.</p>\n",
	      out);
	write_machine(out, page->machine, &page->results->occasion);
	if (occasion_was_busy(&page->results->occasion))
		fputs("<p class=\"bad\">The machine was busy: wall times and lateness are "
		      "inflated, CPU times less "
		      "so.</p>\n",
		      out);
	write_failures(out, page->results);
	if (!page->drawn)
		fputs("<p class=\"bad\">There are no plots: gnuplot was missing or failed.</p>\n",
		      out);
	summary_write(out, page->results);
	fputs(page_how_to_read, out);
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
	write_head(&page);
	show_workloads(&page);
	fputs("</body></html>\n", page.out);
	plots_end(&page.plots);
	free(page.cells);
	return replace_end(&replacement);
}
