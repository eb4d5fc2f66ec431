/* By the first figure of each workload. */
#include <string.h>

#include "bench/summary.h"
#include "bench/table.h"

/* The lowest median of that kind beside `base`; ours are no peers. NULL: there is none. */
static const struct cell *best_of(const struct results *results, const struct cell *base,
				  const char *kind)
{
	const char *figure = base->workload->columns[0].figure;
	const struct cell *best = NULL;
	for (size_t i = 0; i < results->count; i++) {
		const struct cell *cell = results->cells[i];
		if (!cells_meet(cell, base) || !cell_stands(cell) || cell_is_ours(cell) ||
		    strcmp(cell->kind, kind) != 0 || !cell_figure(cell, figure))
			continue;
		if (!best || figure_summary(cell_figure(cell, figure)).median <
				 figure_summary(cell_figure(best, figure)).median)
			best = cell;
	}
	return best;
}

static void write_peer(FILE *out, const struct cell *base, const struct cell *peer)
{
	const struct column *column = base->workload->columns;
	const struct figure *figure = cell_figure(peer, column->figure);
	if (!figure) {
		fputs("<td>-<td><td class=\"word\">", out);
		return;
	}
	double ratio = ratio_of_pairs(figure, cell_figure(base, column->figure));
	fprintf(out, "<td>%.*f<td>", column->decimals,
		figure_summary(figure).median / column->unit);
	if (ratio > 0)
		fprintf(out, "<b>&#215;%.2f</b>", ratio);
	fprintf(out, "<td class=\"word\">%s", peer->candidate);
}

static void write_row(FILE *out, const struct results *results, const struct cell *base,
		      bool begins)
{
	static const char *const kinds[] = {"safe", "bare", "floor"};
	const struct column *column = base->workload->columns;
	char size[32];
	fprintf(out, "<tr%s><td class=\"word\">%s %s", begins ? " class=\"group\"" : "",
		base->workload->name, size_text(base->workload, base->n, size, sizeof size));
	if (base->workload->many_threads)
		fprintf(out, " &#215; %u", base->threads);
	fputs(distance_text(base->distance), out);
	fprintf(out, "<td class=\"mine\"><b>%.*f</b><td class=\"word mine\">%s", column->decimals,
		figure_summary(cell_figure(base, column->figure)).median / column->unit,
		column->heading);
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		write_peer(out, base, best_of(results, base, kinds[i]));
	fputs("</tr>\n", out);
}

static const char head[] =
    "<h3>At a glance</h3>\n<p class=\"soft\">Medians of the first figure. &#215;: the ratio to "
    "tickwheel's.</p>\n<div class=\"wide\"><table class=\"close\">\n"
    "<tr class=\"words\"><th>work<th colspan=\"2\">tickwheel"
    "<th colspan=\"3\">best thread-safe peer<th colspan=\"3\">best bare one"
    "<th colspan=\"3\">floor</tr>\n";

void summary_write(FILE *out, const struct results *measured)
{
	struct results parts, *results = &parts;
	results_by_distance(&parts, measured);
	const struct workload *above = NULL;
	fputs(head, out);
	for (size_t i = 0; i < results->count; i++) {
		const struct cell *cell = results->cells[i];
		if (results_base(results, cell) != cell || !cell_stands(cell) ||
		    !cell_figure(cell, cell->workload->columns[0].figure))
			continue;
		write_row(out, results, cell, cell->workload != above);
		above = cell->workload;
	}
	fputs("</table></div>\n", out);
}
