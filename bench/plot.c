/*
 * Writes gnuplot's script. Names of candidates are safe in it: they consist of letters, digits and
 * - _ . + only. On a log axis a bar begins at the left border, which is a power of ten below all
 * values.
 */
#include <math.h>
#include <string.h>

#include "bench/plot.h"

enum { WIDTH = 380, ROW_HEIGHT = 19, AROUND_ROWS = 46, CURVE_HEIGHT = 300 };

/* Small enough that a bar of 1 and one of `this` can both be read on a linear axis. */
static const double most_linear = 12;

static size_t family_length(const char *candidate)
{
	return strcspn(candidate, "-");
}

static bool same_family(const char *a, const char *b)
{
	size_t length = family_length(a);
	return length == family_length(b) && strncmp(a, b, length) == 0;
}

static void add_series(struct plots *plots, const struct cell *cell, unsigned *families)
{
	static const unsigned marks[] = {7, 5, 9, 11, 13}; /* disc, square, triangles, diamond */
	unsigned members = 0, tint = 0;
	for (size_t i = 0; i < plots->series_count; i++) {
		if (strcmp(plots->series[i].candidate, cell->candidate) == 0)
			return;
		if (same_family(plots->series[i].candidate, cell->candidate)) {
			tint = plots->series[i].tint;
			members++;
		}
	}
	if (plots->series_count == MAX_SERIES)
		return;
	if (!tint)
		tint = TINT_SERIES + (*families)++ % MAX_FAMILIES;
	plots->series[plots->series_count++] =
	    (struct series){.candidate = cell->candidate,
			    .tint = tint,
			    .mark = marks[members % 5],
			    .dashed = strcmp(cell->kind, "safe") != 0,
			    .ours = cell_is_ours(cell)};
}

void plots_begin(struct plots *plots, const struct results *results)
{
	unsigned families = 0;
	*plots = (struct plots){.script = tmpfile()};
	for (size_t i = 0; i < results->count; i++)
		if (cell_stands(results->cells[i]) &&
		    strcmp(results->cells[i]->kind, "baseline") != 0)
			add_series(plots, results->cells[i], &families);
}

static unsigned tint_of(const struct cell *cell)
{
	if (cell_is_ours(cell))
		return TINT_OURS;
	if (strcmp(cell->kind, "bare") == 0)
		return TINT_BARE;
	return strcmp(cell->kind, "safe") == 0 ? TINT_SAFE : TINT_FLOOR;
}

static size_t begin_plot(struct plots *plots, int height)
{
	fprintf(plots->script,
		"reset\n"
		"set terminal svg size %d,%d dynamic noenhanced font 'sans-serif,11'\n"
		"set output\n"
		"set tics nomirror scale 0.6\n"
		"set border lc rgb %u\n"
		"set style data points\n"
		"unset key\n",
		WIDTH, height, TINT_LINE);
	return plots->count++;
}

/* ---- rows: bars and lateness */

struct axis {
	double from, to;
	bool log;
};

static struct axis axis_of(double least, double most)
{
	if (most <= 0)
		return (struct axis){.from = 0, .to = 1};
	if (least > 0 && most / least > most_linear)
		return (struct axis){
		    .from = pow(10, floor(log10(least * 0.9))), .to = most, .log = true};
	return (struct axis){.from = 0, .to = most};
}

/* Leaves room for a number behind the longest bar. */
static double axis_end(struct axis axis)
{
	const double room = 0.24;
	return axis.log ? axis.from * pow(axis.to / axis.from, 1 / (1 - room))
			: axis.to / (1 - room);
}

/* Powers of ten alone would be too few for a short axis: 1, 2, 5, 10. */
static void set_close_tics(FILE *script, char name, double from, double to)
{
	static const double steps[] = {1, 2, 5};
	const char *before = "";
	fprintf(script, "set %ctics (", name);
	for (double decade = pow(10, floor(log10(from))); decade <= to; decade *= 10)
		for (size_t i = 0; i < 3; i++)
			if (steps[i] * decade >= from && steps[i] * decade <= to) {
				fprintf(script, "%s%g", before, steps[i] * decade);
				before = ", ";
			}
	fputs(")\n", script);
}

/* 1, 2, 5 or 10 times a power of ten, the next above. */
static double round_step(double least)
{
	double decade = pow(10, floor(log10(least))), rest = least / decade;
	return decade * (rest <= 1 ? 1 : rest <= 2 ? 2 : rest <= 5 ? 5 : 10);
}

static void set_axis(FILE *script, char name, struct axis axis, double end)
{
	const double shortest = 50;
	fprintf(script, "set %crange [%.6g:%.6g]\nset grid %ctics\n", name, axis.from, end, name);
	if (!axis.log) {
		fprintf(script, "set %ctics 0, %g\n", name, round_step(end / 5));
		return;
	}
	fprintf(script, "set logscale %c\nset m%ctics 1\nset format %c '%s'\n", name, name, name,
		axis.from < 1 ? "%g" : "%.0s%c");
	if (end / axis.from < shortest)
		set_close_tics(script, name, axis.from, end);
}

static void begin_rows(FILE *script, size_t rows, struct axis axis)
{
	set_axis(script, 'x', axis, axis_end(axis));
	fprintf(script,
		"set lmargin at screen 0.35\nset rmargin at screen 0.97\nset tmargin 0.5\nset "
		"bmargin 2\n"
		"set border 2\nset yrange [%zu.5:-0.5]\nset ytics scale 0\nset bars 0.4\n$rows << "
		"END_OF_ROWS\n",
		rows - 1);
}

static double at_least(double value, double least)
{
	return value > least ? value : least;
}

static void write_bar(FILE *script, const struct view *view, size_t row, struct axis axis)
{
	const struct cell *cell = view->cells[row];
	const struct column *column = view->column;
	const struct figure *beside = view->beside ? cell_figure(cell, view->beside->figure) : NULL;
	struct summary s = figure_summary(cell_figure(cell, column->figure));
	double median = s.median / column->unit, min = s.min / column->unit,
	       max = s.max / column->unit;
	double mark = beside ? figure_summary(beside).median / view->beside->unit : NAN;
	fprintf(script, "\"%s\" %zu %.8g %.8g %.8g %u %.8g %.8g %.*f\n", cell->candidate, row,
		at_least(median, axis.from), at_least(min, axis.from), at_least(max, axis.from),
		tint_of(cell), mark, at_least(fmax(max, mark), axis.from), column->decimals,
		median);
}

size_t plot_bars(struct plots *plots, const struct view *view)
{
	struct axis axis = axis_of(view->least, view->most);
	size_t plot = begin_plot(plots, AROUND_ROWS + ROW_HEIGHT * (int)view->count);
	FILE *script = plots->script;
	begin_rows(script, view->count, axis);
	for (size_t row = 0; row < view->count; row++)
		write_bar(script, view, row, axis);
	fprintf(script,
		"END_OF_ROWS\nplot $rows using (%.6g):2:(%.6g):3:($2-0.36):($2+0.36):6:ytic(1) "
		"with boxxyerror "
		"fs solid noborder lc rgb variable, "
		"'' using 3:2:4:5 with xerrorbars pt -1 lc rgb %u, "
		"'' using 7:2 with points pt 12 ps 0.7 lc rgb %u, "
		"'' using 8:2:9 with labels left offset 1.1,0\n",
		axis.from, axis.from, TINT_ERROR, TINT_ERROR);
	return plot;
}

size_t plot_lateness(struct plots *plots, const struct view *view)
{
	static const char *const figures[] = {"lateness_p50_ns", "lateness_p99_ns",
					      "lateness_p999_ns", "lateness_max_ns"};
	/* ring, disc, triangle, diamond; the page says so, too */
	static const unsigned marks[] = {6, 7, 9, 13};
	const double shortest_us = 1, least = at_least(view->least, shortest_us);
	struct axis axis = {.from = pow(10, floor(log10(least))),
			    .to = at_least(view->most, 10 * least),
			    .log = true};
	size_t plot = begin_plot(plots, AROUND_ROWS + ROW_HEIGHT * (int)view->count);
	FILE *script = plots->script;
	begin_rows(script, view->count, axis);
	for (size_t i = 0; i < view->count; i++) {
		fprintf(script, "\"%s\" %zu %u", view->cells[i]->candidate, i,
			tint_of(view->cells[i]));
		for (size_t f = 0; f < 4; f++) {
			const struct figure *figure = cell_figure(view->cells[i], figures[f]);
			struct summary s = figure ? figure_summary(figure) : (struct summary){0};
			fprintf(script, " %.8g %.8g %.8g", at_least(s.median / 1e3, axis.from),
				at_least(s.min / 1e3, axis.from), at_least(s.max / 1e3, axis.from));
		}
		fputc('\n', script);
	}
	fprintf(
	    script,
	    "END_OF_ROWS\nplot $rows using 4:2:($13-$4):(0):ytic(1) with vectors nohead lc rgb %u",
	    TINT_LINE);
	for (unsigned f = 0; f < 4; f++)
		fprintf(script, ", '' using %u:2:%u:%u with xerrorbars pt -1 lc rgb %u", 4 + 3 * f,
			5 + 3 * f, 6 + 3 * f, TINT_SAFE);
	for (unsigned f = 0; f < 4; f++)
		fprintf(script, ", '' using %u:2:3 with points pt %u ps 0.8 lc rgb variable",
			4 + 3 * f, marks[f]);
	fputc('\n', script);
	return plot;
}

/* ---- curves */

static void write_curve(FILE *script, const struct view *view, size_t number,
			const struct series *series, bool over_threads)
{
	fprintf(script, "$curve%zu << END_OF_ROWS\n", number);
	for (size_t i = 0; i < view->count; i++) {
		const struct cell *cell = view->cells[i];
		if (strcmp(cell->candidate, series->candidate) != 0)
			continue;
		struct summary s = figure_summary(cell_figure(cell, view->column->figure));
		double unit = view->column->unit;
		fprintf(script, "%u %.8g %.8g %.8g\n", over_threads ? cell->threads : cell->n,
			s.median / unit, s.min / unit, s.max / unit);
	}
	fputs("END_OF_ROWS\n", script);
}

static bool has_series(const struct view *view, const struct series *series)
{
	for (size_t i = 0; i < view->count; i++)
		if (strcmp(view->cells[i]->candidate, series->candidate) == 0)
			return true;
	return false;
}

static void set_thread_tics(FILE *script, const struct view *view)
{
	const char *before = "set xtics (";
	fputs("set logscale x 2\nset offsets graph 0.04, graph 0.04\n", script);
	for (size_t i = 0; i < view->count; i++) {
		fprintf(script, "%s%u", before, view->cells[i]->threads);
		before = ", ";
	}
	fputs(")\n", script);
}

static void set_size_axis(FILE *script, const struct view *view)
{
	const double margin = 1.4;
	double least = INFINITY, most = 0;
	for (size_t i = 0; i < view->count; i++) {
		least = fmin(least, view->cells[i]->n);
		most = fmax(most, view->cells[i]->n);
	}
	set_axis(script, 'x', (struct axis){.from = least / margin, .to = most, .log = true},
		 most * margin);
}

size_t plot_growth(struct plots *plots, const struct view *view, bool over_threads)
{
	struct axis axis = {.from = view->least * 0.8, .to = view->most, .log = true};
	size_t plot = begin_plot(plots, CURVE_HEIGHT);
	FILE *script = plots->script;
	const char *before = "plot";
	set_axis(script, 'y', axis, axis.to * 1.2);
	if (over_threads)
		set_thread_tics(script, view);
	else
		set_size_axis(script, view);
	fputs("set border 3\nset lmargin 7\nset rmargin 1.5\nset tmargin 0.5\n"
	      "set bmargin 2\nset bars 0.4\n",
	      script);
	for (size_t i = 0; i < plots->series_count; i++)
		if (has_series(view, &plots->series[i]))
			write_curve(script, view, i, &plots->series[i], over_threads);
	for (size_t i = plots->series_count; i-- > 0;) { /* ours last, on top */
		const struct series *s = &plots->series[i];
		if (!has_series(view, s))
			continue;
		fprintf(
		    script,
		    "%s $curve%zu using 1:2:3:4 with yerrorlines lw %s pt %u ps 0.5 lc rgb %u%s",
		    before, i, s->ours ? "2.2" : "1.2", s->mark, s->tint, s->dashed ? " dt 2" : "");
		before = ",";
	}
	fputc('\n', script);
	return plot;
}
