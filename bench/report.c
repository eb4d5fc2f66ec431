/*
 * One line per cell; medians, and the span of the first column. Ratios are the median of those of the pairs of one
 * round.
 */
#include <string.h>

#include "bench/report.h"
#include "bench/targets.h"

/* Whom the others are compared with. */
static const char ours[] = "tickwheel";

enum { NUMBER_WIDTH = 10, SPAN_WIDTH = 20 };

void report_machine(FILE *out, const struct machine *machine)
{
	fprintf(out, "cpu          %s, %u cores\n", machine->cpu, machine->cores);
	fprintf(out, "compiler     %s\n", machine->compiler);
	fprintf(out, "commit       %s\n", machine->commit);
	fprintf(out, "clock        %.1f ns a reading (on the machine that the targets come from: %.0f ns)\n",
		machine->clock_ns, REFERENCE_CLOCK_NS);
	fprintf(out, "cas          %.1f ns, uncontended (there: %.1f ns)\n", machine->cas_ns, REFERENCE_CAS_NS);
	fprintf(out, "first touch  %.0f ns a page of 4 KiB; no part of any figure below but memory\n",
		machine->first_touch_ns);
}

void report_trials(FILE *out, const struct results *results)
{
	const char *before = "trial        passed by ";
	for (size_t i = 0; i < results->count; i++) {
		const struct cell *cell = results->cells[i];
		if (cell->workload != &workload_trial || cell->trouble[0])
			continue;
		fprintf(out, "%s%s", before, cell->subject);
		before = ", ";
	}
	if (before[0] == ',')
		fputs(": each timer ran once and not early, or was cancelled and did not run\n", out);
	fflush(out);
}

static int column_width(const struct column *column)
{
	int width = (int)strlen(column->heading) + 2;
	return width > NUMBER_WIDTH ? width : NUMBER_WIDTH;
}

static void print_headings(FILE *out, const struct workload *workload)
{
	fprintf(out, "\n%s %s\n", workload->name, workload->title);
	fprintf(out, "%9s %7s  %-13s", "n", "threads", "subject");
	for (const struct column *c = workload->columns; c->figure; c++) {
		fprintf(out, "%*s", column_width(c), c->heading);
		if (c == workload->columns)
			fprintf(out, "%*s", SPAN_WIDTH, "min .. max");
	}
	fprintf(out, "%*s%*s\n", NUMBER_WIDTH, "ratio", NUMBER_WIDTH, "to reach");
}

static void print_size(FILE *out, const struct cell *cell)
{
	char text[16];
	uint32_t n = cell->n;
	if (cell->workload->size_label)
		snprintf(text, sizeof text, "%s", cell->workload->size_label(n));
	else if (n % 1000000 == 0)
		snprintf(text, sizeof text, "%uM", n / 1000000);
	else if (n % 1000 == 0)
		snprintf(text, sizeof text, "%uk", n / 1000);
	else
		snprintf(text, sizeof text, "%u", n);
	fprintf(out, "%9s %7u", text, cell->threads);
}

static void print_span(FILE *out, const struct column *column, struct summary summary)
{
	char text[64];
	snprintf(text, sizeof text, "%.*f .. %.*f", column->decimals, summary.min / column->unit, column->decimals,
		 summary.max / column->unit);
	fprintf(out, "%*s", SPAN_WIDTH, text);
}

static void print_figures(FILE *out, const struct cell *cell)
{
	const struct column *first = cell->workload->columns;
	for (const struct column *c = first; c->figure; c++) {
		const struct figure *figure = cell_figure(cell, c->figure);
		if (!figure) {
			fprintf(out, "%*s", column_width(c) + (c == first ? SPAN_WIDTH : 0), "-");
			continue;
		}
		struct summary summary = figure_summary(figure);
		fprintf(out, "%*.*f", column_width(c), c->decimals, summary.median / c->unit);
		if (c == first)
			print_span(out, c, summary);
	}
}

static void print_ratio(FILE *out, const struct results *results, const struct cell *cell)
{
	const char *name = cell->workload->columns[0].figure;
	const struct cell *base = results_find(results, cell->workload, ours, cell->n, cell->threads);
	const struct figure *mine = cell_figure(cell, name), *theirs = cell_figure(base, name);
	double ratio = mine && theirs ? ratio_of_pairs(mine, theirs) : 0;
	if (ratio > 0)
		fprintf(out, "%*.2f", NUMBER_WIDTH, ratio);
	else
		fprintf(out, "%*s", NUMBER_WIDTH, "-");
}

static void print_cell(FILE *out, const struct results *results, const struct cell *cell, bool same_group)
{
	if (same_group)
		fprintf(out, "%9s %7s", "", "");
	else
		print_size(out, cell);
	fprintf(out, "  %-13s", cell->subject);
	print_figures(out, cell);
	print_ratio(out, results, cell);
	fprintf(out, "%*s%s\n", NUMBER_WIDTH, target_text(cell->workload->name, cell->subject, cell->n, cell->threads),
		cell->trouble[0] ? "  FAILED, see below" : "");
}

void report_workload(FILE *out, const struct results *results, const struct workload *workload)
{
	const struct cell *before = NULL;
	for (size_t i = 0; i < results->count; i++) {
		const struct cell *cell = results->cells[i];
		if (cell->workload != workload || !cell->finished)
			continue;
		if (!before)
			print_headings(out, workload);
		print_cell(out, results, cell, before && before->n == cell->n && before->threads == cell->threads);
		before = cell;
	}
	fflush(out);
}

static void print_failures(FILE *out, const struct results *results)
{
	for (size_t i = 0; i < results->count; i++) {
		const struct cell *c = results->cells[i];
		if (c->trouble[0])
			fprintf(out, "FAILED: %s %s n=%u threads=%u: %s\n", c->workload->name, c->subject, c->n,
				c->threads, c->trouble);
	}
}

static void print_disturbance(FILE *out, const struct disturbance *disturbance, double took_s)
{
	const double much = 0.1; /* of one CPU */
	double others_s = (double)disturbance->others_cpu_ms / 1e3, stolen_s = (double)disturbance->stolen_ms / 1e3;
	fprintf(out,
		"It took %.0f s. Meanwhile other processes used %.1f s of CPU time, and the hypervisor took %.1f s.\n",
		took_s, others_s, stolen_s);
	if (others_s + stolen_s > much * took_s)
		fputs("The machine was busy: wall times and lateness are inflated, CPU times less so.\n", out);
}

void report_notes(FILE *out, const struct results *results, const struct disturbance *disturbance, double took_s)
{
	fprintf(out, "\nMedians. ratio: the first figure to %s's, pair by pair; above 1 is slower, or more. ", ours);
	fputs(
	    "ns/op: wall time of each thread; cpu: of the whole process.\n"
	    "limit does no more than touch the memory that must be touched; the aim is a ratio of 0.50 or more there.\n"
	    "Bare subjects have no lock and one thread, which reads the clock once for 64 operations.\n",
	    out);
	print_disturbance(out, disturbance, took_s);
	print_failures(out, results);
	fflush(out);
}
