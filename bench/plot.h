/*
 * Plots by gnuplot, as SVG inside the page. All plots are described first, then one run of gnuplot
 * draws them.
 *
 * The page's style sheet chooses the colors, for light and for dark. A line of tint k is drawn in
 * the color rgb(0, 0, k), and the style sheet selects it by that attribute.
 */
#ifndef BENCH_PLOT_H
#define BENCH_PLOT_H

#include <stdio.h>

#include "bench/results.h"

/* SERIES and above: one for each family of candidates in a curve. */
enum tint {
	TINT_OURS = 1,
	TINT_SAFE,
	TINT_BARE,
	TINT_FLOOR,
	TINT_ERROR,
	TINT_LINE,
	TINT_SERIES = 16
};

enum { MAX_SERIES = 40, MAX_FAMILIES = 16 };

/*
 * How a candidate looks in all curves: the color is its family's ("heap" of "heap-bare"), a bare
 * candidate is dashed, and the mark is its place in the family.
 */
struct series {
	const char *candidate;
	/* gnuplot's number of it; in the svg it is the element gpPt<mark - 1> */
	unsigned tint, mark;
	bool dashed, ours;
};

struct plots {
	FILE *script;
	size_t count, series_count;
	struct series series[MAX_SERIES];
	char *output, **svgs;
};

/* NULL script: no temporary file could be made. */
void plots_begin(struct plots *plots, const struct results *results);

/* Some cells of one workload, and what is to be seen of them. */
struct view {
	const struct cell *const *cells;
	size_t count;
	const struct column *column, *beside; /* NULL beside: nothing is marked beside the bars */
	/* of the figure, in the column's unit, in all plots that are to be compared */
	double least, most;
};

/* Each answers the number of the plot. Bars: a cell each, min and max as error bars. */
size_t plot_bars(struct plots *plots, const struct view *view);

/* p50, p99, p99.9 and max of each cell, in microseconds. */
size_t plot_lateness(struct plots *plots, const struct view *view);

/* A line for each candidate over the number of timers, or of threads. */
size_t plot_growth(struct plots *plots, const struct view *view, bool over_threads);

/* False: no plots, and stderr knows why. */
bool plots_draw(struct plots *plots);

/* Nothing if the plots were not drawn. */
void plots_write(FILE *out, const struct plots *plots, size_t plot);

void plots_end(struct plots *plots);

#endif
