/*
 * The rule. A figure of a cell has moved if the spans min..max of its repetitions, the old ones and
 * the new ones, do not overlap: then every repetition of one run is above every one of the other,
 * which noise within the runs does not explain. A span counts as no narrower than 2.5 % of the
 * median either way, so that the comparison does not report noise in figures that repeat almost
 * exactly. With fewer than three repetitions the span counts as no narrower than 25 %. The
 * comparison prints the ratio of the medians.
 *
 * Between two runs the whole machine may have become slower, which no span shows. So the comparison
 * also prints the median ratio of the other candidates in the same cell, whose code is usually the
 * same in both runs. If that ratio has moved as far, the machine is the cause.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/compare.h"
#include "bench/table.h"

enum { FEW_RUNS = 3 };

struct span {
	double low, high;
};

static struct span span_of(const struct figure *figure)
{
	struct summary s = figure_summary(figure);
	double least = fabs(s.median) * (s.count < FEW_RUNS ? 0.25 : 0.025);
	return (struct span){.low = fmin(s.min, s.median - least),
			     .high = fmax(s.max, s.median + least)};
}

static bool has_moved(const struct figure *old, const struct figure *now)
{
	struct span before = span_of(old), after = span_of(now);
	return before.high < after.low || after.high < before.low;
}

/* What happened beside the measurement, and how much was measured, is no figure of a candidate. */
static bool is_circumstance(const char *name)
{
	static const char *const names[] = {"others_cpu_ms", "stolen_ms", "ops", "rtt_ns"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

/* NAN: there is none. */
static double ratio_of_medians(const struct figure *old, const struct figure *now)
{
	double before = figure_summary(old).median;
	return before > 0 ? figure_summary(now).median / before : NAN;
}

struct comparison {
	const struct results *old, *now;
	unsigned compared, moved, failed;
};

static const struct cell *twin_of(const struct results *results, const struct cell *cell)
{
	return results_twin(results, cell);
}

static const struct figure *twin_figure(const struct results *results, const struct cell *cell,
					const char *name)
{
	const struct cell *twin = twin_of(results, cell);
	return twin && cell_stands(twin) ? cell_figure(twin, name) : NULL;
}

/* The median of the ratios of the other candidates, our variants left out; NAN: there are none. */
static double ratio_of_others(const struct comparison *c, const struct cell *cell, const char *name)
{
	size_t count = 0;
	double *ratios = malloc((c->now->count + 1) * sizeof *ratios);
	for (size_t i = 0; ratios && i < c->now->count; i++) {
		const struct cell *other = c->now->cells[i];
		if (!cells_meet(other, cell) || other == cell || cell_is_ours(other) ||
		    !cell_stands(other))
			continue;
		const struct figure *now = cell_figure(other, name),
				    *old = twin_figure(c->old, other, name);
		double ratio = now && old ? ratio_of_medians(old, now) : NAN;
		if (isfinite(ratio))
			ratios[count++] = ratio;
	}
	double ratio = count ? median_of(ratios, count) : NAN;
	free(ratios);
	return ratio;
}

static void print_ratio(FILE *out, double ratio)
{
	if (isfinite(ratio))
		fprintf(out, " %8.2f", ratio);
	else
		fprintf(out, " %8s", "-");
}

static void print_moved(FILE *out, const struct comparison *c, const struct cell *cell,
			const struct figure *old, const struct figure *now)
{
	char size[16], work[32];
	if (c->moved == 1)
		fprintf(out, "%-5s%-14s%-20s%-22s %10s %10s %8s %8s\n", "", "n x threads",
			"candidate", "figure", "old", "new", "new/old", "others'");
	snprintf(work, sizeof work, "%s x %u%s",
		 size_text(cell->workload, cell->n, size, sizeof size), cell->threads,
		 distance_text(cell->distance));
	fprintf(out, "%-5s%-14s%-20s%-22s %10.4g %10.4g", cell->workload->name, work,
		cell->candidate, now->name, figure_summary(old).median, figure_summary(now).median);
	print_ratio(out, ratio_of_medians(old, now));
	print_ratio(out, ratio_of_others(c, cell, now->name));
	fputc('\n', out);
}

static void compare_cells(FILE *out, struct comparison *c, const struct cell *old,
			  const struct cell *now)
{
	for (size_t i = 0; i < now->figure_count; i++) {
		const struct figure *after = &now->figures[i],
				    *before = cell_figure(old, after->name);
		if (!before || is_circumstance(after->name))
			continue;
		c->compared++;
		if (!has_moved(before, after))
			continue;
		c->moved++;
		print_moved(out, c, now, before, after);
	}
}

static unsigned count_without_twin(const struct results *of, const struct results *in)
{
	unsigned count = 0;
	for (size_t i = 0; i < of->count; i++)
		count += of->cells[i]->finished && !twin_of(in, of->cells[i]);
	return count;
}

static void print_differences(FILE *out, const struct machine *old, const struct machine *now,
			      const struct occasion *before, const struct occasion *after)
{
	if (strcmp(old->cpu, now->cpu) != 0 || old->cores != now->cores)
		fprintf(out,
			"Another machine (%s, %u cores; %s, %u cores): times cannot be compared.\n",
			old->cpu, old->cores, now->cpu, now->cores);
	if (strcmp(old->compiler, now->compiler) != 0)
		fprintf(out, "Another compiler: %s; %s.\n", old->compiler, now->compiler);
	if (before->mode[0] && after->mode[0] && strcmp(before->mode, after->mode) != 0)
		fprintf(out, "Another length of run: %s; %s.\n", before->mode, after->mode);
}

static void print_count(FILE *out, unsigned count, const char *what)
{
	if (count)
		fprintf(out, " %u %s%s", count, count == 1 ? "cell" : "cells", what);
}

/* Near is compared with near, and far with far, if both know which is which. */
void compare_results(FILE *out, const struct machine *old_machine, const struct results *old,
		     const struct machine *machine, const struct results *results)
{
	struct results old_parts, parts;
	if (results_have_distances(old) && results_have_distances(results)) {
		results_by_distance(&old_parts, old);
		results_by_distance(&parts, results);
		old = &old_parts;
		results = &parts;
	}
	struct comparison c = {.old = old, .now = results};
	fprintf(out, "\nWhat has moved beyond noise since %s, commit %.12s:\n",
		old->occasion.when[0] ? old->occasion.when : "the old results",
		old_machine->commit);
	print_differences(out, old_machine, machine, &old->occasion, &results->occasion);
	for (size_t i = 0; i < results->count; i++) {
		const struct cell *now = results->cells[i],
				  *twin = now->finished ? twin_of(old, now) : NULL;
		if (twin && cell_stands(twin) && cell_stands(now))
			compare_cells(out, &c, twin, now);
		else if (twin)
			c.failed++;
	}
	fprintf(out, "%u of %u figures have moved.", c.moved, c.compared);
	print_count(out, c.failed, " left out: failed in one of the runs.");
	print_count(out, count_without_twin(old, results), " only in the old results.");
	print_count(out, count_without_twin(results, old), " only in the new ones.");
	fputc('\n', out);
	fflush(out);
}
