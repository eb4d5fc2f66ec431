/* Medians; the ratio is the median of those of the pairs of one round. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "bench/table.h"
#include "bench/targets.h"

enum { PAGE_WIDTH = 100 };

const char *size_text(const struct workload *workload, uint32_t n, char *buffer, size_t size)
{
	if (workload->size_label)
		snprintf(buffer, size, "%s", workload->size_label(n));
	else if (n && n % 1000000 == 0)
		snprintf(buffer, size, "%uM", n / 1000000);
	else if (n && n % 1000 == 0)
		snprintf(buffer, size, "%uk", n / 1000);
	else
		snprintf(buffer, size, "%u", n);
	return buffer;
}

const char *distance_text(enum distance distance)
{
	return distance == NEAR ? " near" : distance == FAR ? " far" : "";
}

/* ---- making */

struct filler {
	const struct results *results;
	const struct workload *workload;
	struct table *table;
	bool all_spans, first_span;
	unsigned column;
};

static struct table_row *add_row(struct table *table)
{
	table->rows = realloc(table->rows, (table->row_count + 1) * sizeof *table->rows);
	if (!table->rows)
		abort();
	struct table_row *row = &table->rows[table->row_count++];
	*row = (struct table_row){0};
	return row;
}

__attribute__((format(printf, 3, 4))) static void fill(struct filler *filler, struct table_row *row,
						       const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(row->texts[filler->column++], TABLE_TEXT_SIZE, format, arguments);
	va_end(arguments);
}

static void fill_headings(struct filler *filler)
{
	struct table_row *row = add_row(filler->table);
	filler->column = 0;
	fill(filler, row, filler->workload->many_threads ? "n x threads" : "n");
	fill(filler, row, "candidate");
	fill(filler, row, "kind");
	for (const struct column *c = filler->workload->columns; c->figure; c++) {
		fill(filler, row, "%s", c->heading);
		if (c == filler->workload->columns && filler->first_span)
			fill(filler, row, "min..max");
	}
	fill(filler, row, "ratio");
	fill(filler, row, "aim");
	filler->table->column_count = filler->column;
}

static void fill_figure(struct filler *filler, struct table_row *row, const struct cell *cell,
			const struct column *c)
{
	const struct figure *figure = cell_figure(cell, c->figure);
	bool first = c == filler->workload->columns;
	if (!figure) {
		fill(filler, row, "-");
		if (first && filler->first_span)
			filler->column++;
		return;
	}
	struct summary s = figure_summary(figure);
	double min = s.min / c->unit, median = s.median / c->unit, max = s.max / c->unit;
	if (filler->all_spans && s.count > 1) {
		fill(filler, row, "%.*f (%.*f..%.*f)", c->decimals, median, c->decimals, min,
		     c->decimals, max);
		return;
	}
	fill(filler, row, "%.*f", c->decimals, median);
	if (first && filler->first_span && s.count > 1)
		fill(filler, row, "%.*f..%.*f", c->decimals, min, c->decimals, max);
	else if (first && filler->first_span)
		fill(filler, row, "one run");
}

static void fill_ratio(struct filler *filler, struct table_row *row, const struct cell *cell)
{
	const char *name = filler->workload->columns[0].figure;
	const struct cell *base = results_base(filler->results, cell);
	const struct figure *mine = cell_figure(cell, name), *ours = cell_figure(base, name);
	double ratio = mine && ours ? ratio_of_pairs(mine, ours) : 0;
	if (ratio > 0)
		fill(filler, row, "%.2f", ratio);
	else
		fill(filler, row, "-");
}

static void fill_row(struct filler *filler, const struct cell *cell, const struct cell *above)
{
	char size[32];
	struct table_row *row = add_row(filler->table);
	filler->column = 0;
	row->begins_group = !above || !cells_meet(cell, above);
	row->ours = cell_is_ours(cell);
	size_text(cell->workload, cell->n, size, sizeof size);
	if (!row->begins_group)
		filler->column++;
	else if (cell->workload->many_threads)
		fill(filler, row, "%s x %u%s", size, cell->threads, distance_text(cell->distance));
	else
		fill(filler, row, "%s%s", size, distance_text(cell->distance));
	fill(filler, row, "%s", cell->candidate);
	fill(filler, row, "%s", cell->trouble[0] ? "FAILED" : cell->kind);
	for (const struct column *c = filler->workload->columns; c->figure; c++)
		fill_figure(filler, row, cell, c);
	fill_ratio(filler, row, cell);
	fill(filler, row, "%s",
	     target_text(cell->workload->name, cell->candidate, cell->n, cell->threads));
}

static void column_widths(const struct table *table, unsigned *widths)
{
	memset(widths, 0, TABLE_COLUMNS * sizeof *widths);
	for (size_t r = 0; r < table->row_count; r++)
		for (unsigned c = 0; c < table->column_count; c++) {
			unsigned length = (unsigned)strlen(table->rows[r].texts[c]);
			widths[c] = length > widths[c] ? length : widths[c];
		}
}

static unsigned width_of(const struct table *table)
{
	unsigned widths[TABLE_COLUMNS], all = 0;
	column_widths(table, widths);
	for (unsigned c = 0; c < table->column_count; c++)
		all += widths[c] + 1;
	return all;
}

static void make(struct filler *filler)
{
	const struct cell *above = NULL;
	fill_headings(filler);
	for (size_t i = 0; i < filler->results->count; i++) {
		const struct cell *cell = filler->results->cells[i];
		if (cell->workload != filler->workload || !cell->finished)
			continue;
		fill_row(filler, cell, above);
		above = cell;
	}
}

void table_make(struct table *table, const struct results *results, const struct workload *workload,
		bool all_spans)
{
	struct results parts;
	results_by_distance(&parts, results);
	*table = (struct table){0};
	struct filler filler = {.results = &parts,
				.workload = workload,
				.table = table,
				.all_spans = all_spans,
				.first_span = !all_spans};
	make(&filler);
	if (all_spans || width_of(table) <= PAGE_WIDTH)
		return;
	table_free(table);
	filler.first_span = false;
	make(&filler);
}

void table_free(struct table *table)
{
	free(table->rows);
	*table = (struct table){0};
}

/* ---- printing */

void table_print(FILE *out, const struct table *table)
{
	unsigned widths[TABLE_COLUMNS];
	column_widths(table, widths);
	int gap = width_of(table) + table->column_count <= PAGE_WIDTH ? 2 : 1;
	for (size_t r = 0; r < table->row_count; r++) {
		int left = 0; /* blanks that only stand before something */
		for (unsigned c = 0; c < table->column_count; c++) {
			const char *text = table->rows[r].texts[c];
			int length = (int)strlen(text), pad = (int)widths[c] - length;
			left += (c ? gap : 0) + (c < TABLE_LEFT ? 0 : pad);
			if (length)
				fprintf(out, "%*s%s", left, "", text);
			left = length ? 0 : left;
			left += c < TABLE_LEFT ? pad : 0;
		}
		fputc('\n', out);
	}
}
