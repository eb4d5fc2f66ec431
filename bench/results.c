/* Cells and their statistics. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/results.h"

static void *must(void *memory)
{
	if (!memory) {
		fputs("bench: no memory\n", stderr);
		exit(EXIT_FAILURE);
	}
	return memory;
}

static const char *kind_of(const char *name)
{
	const struct candidate *candidate = candidate_find(name);
	if (strcmp(name, "limit") == 0)
		return "floor";
	if (strcmp(name, "baseline") == 0)
		return "baseline";
	return !candidate ? "unknown" : candidate->bare ? "bare" : "safe";
}

struct cell *results_add(struct results *results, const struct workload *workload,
			 const char *candidate, uint32_t n, unsigned threads)
{
	struct cell *cell = must(calloc(1, sizeof *cell));
	*cell = (struct cell){.workload = workload,
			      .candidate = candidate,
			      .kind = kind_of(candidate),
			      .n = n,
			      .threads = threads};
	results->cells =
	    must(realloc(results->cells, (results->count + 1) * sizeof *results->cells));
	results->cells[results->count++] = cell;
	return cell;
}

const struct cell *results_twin(const struct results *results, const struct cell *cell)
{
	for (size_t i = 0; i < results->count; i++) {
		const struct cell *c = results->cells[i];
		if (cells_meet(c, cell) && strcmp(c->candidate, cell->candidate) == 0)
			return c->finished ? c : NULL;
	}
	return NULL;
}

bool occasion_was_busy(const struct occasion *occasion)
{
	const double much = 0.1;
	return occasion->others_cpu_s + occasion->stolen_s > much * occasion->took_s;
}

bool cell_is_ours(const struct cell *cell)
{
	return strncmp(cell->candidate, "tickwheel", strlen("tickwheel")) == 0;
}

bool cell_stands(const struct cell *cell)
{
	return cell->finished && !cell->trouble[0];
}

bool cells_meet(const struct cell *a, const struct cell *b)
{
	return a->workload == b->workload && a->n == b->n && a->threads == b->threads &&
	       a->distance == b->distance;
}

const struct cell *results_base(const struct results *results, const struct cell *cell)
{
	for (size_t i = 0; i < results->count; i++)
		if (results->cells[i]->finished && cells_meet(results->cells[i], cell) &&
		    cell_is_ours(results->cells[i]))
			return results->cells[i];
	return NULL;
}

static struct figure *figure_of(struct cell *cell, const char *name)
{
	for (size_t i = 0; i < cell->figure_count; i++)
		if (strcmp(cell->figures[i].name, name) == 0)
			return &cell->figures[i];
	if (cell->figure_count == OUTCOME_FIGURES)
		return NULL;
	struct figure *figure = &cell->figures[cell->figure_count++];
	snprintf(figure->name, sizeof figure->name, "%s", name);
	return figure;
}

bool cell_add_run(struct cell *cell, const char *name, double value)
{
	struct figure *figure = figure_of(cell, name);
	if (!figure)
		return false;
	figure->runs = must(realloc(figure->runs, (figure->count + 1) * sizeof *figure->runs));
	figure->runs[figure->count++] = value;
	return true;
}

static double outcome_value(const struct outcome *outcome, const char *name)
{
	for (uint32_t i = 0; i < outcome->count; i++)
		if (strcmp(outcome->figures[i].name, name) == 0)
			return outcome->figures[i].value;
	return NAN;
}

void cell_add_outcome(struct cell *cell, struct cell *baseline, const struct outcome *outcome)
{
	const char prefix[] = "baseline_";
	char name[FIGURE_NAME_SIZE + sizeof "lateness_"];
	bool fed_baseline = false;
	for (uint32_t i = 0; i < outcome->count; i++) {
		const char *given = outcome->figures[i].name;
		bool of_baseline = strncmp(given, prefix, sizeof prefix - 1) == 0;
		if (of_baseline)
			snprintf(name, sizeof name, "lateness_%s", given + sizeof prefix - 1);
		fed_baseline |= of_baseline;
		cell_add_run(of_baseline ? baseline : cell, of_baseline ? name : given,
			     outcome->figures[i].value);
	}
	if (baseline && fed_baseline)
		cell_add_run(baseline, "rtt_ns", outcome_value(outcome, "rtt_ns"));
	cell_add_run(cell, "violations", outcome->violations);
	cell->lost |= outcome->count == 0;
	if (outcome->ops)
		cell->ops = outcome->ops;
	if (outcome->trouble[0] && !cell->trouble[0])
		memcpy(cell->trouble, outcome->trouble, sizeof cell->trouble);
}

const struct figure *cell_figure(const struct cell *cell, const char *name)
{
	for (size_t i = 0; cell && i < cell->figure_count; i++)
		if (strcmp(cell->figures[i].name, name) == 0)
			return &cell->figures[i];
	return NULL;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

double median_of(double *values, size_t count)
{
	qsort(values, count, sizeof *values, compare);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

struct summary figure_summary(const struct figure *figure)
{
	size_t count = 0;
	double *sorted = must(malloc((figure->count + 1) * sizeof *sorted));
	struct summary summary = {0};
	for (size_t i = 0; i < figure->count; i++)
		if (isfinite(figure->runs[i]))
			sorted[count++] = figure->runs[i];
	if (count > 0) {
		double middle = median_of(sorted, count);
		summary = (struct summary){
		    .count = count, .min = sorted[0], .median = middle, .max = sorted[count - 1]};
	}
	free(sorted);
	return summary;
}

double ratio_of_pairs(const struct figure *figure, const struct figure *to)
{
	size_t pairs = 0;
	double *ratios = must(malloc((figure->count + 1) * sizeof *ratios));
	for (size_t i = 0; i < figure->count && i < to->count; i++)
		if (to->runs[i] > 0 && isfinite(figure->runs[i]))
			ratios[pairs++] = figure->runs[i] / to->runs[i];
	double ratio = pairs ? median_of(ratios, pairs) : 0;
	free(ratios);
	return ratio;
}

/* ---- near and far */

static enum distance distance_of(const struct figure *rtt, size_t run)
{
	if (!rtt || run >= rtt->count || !isfinite(rtt->runs[run]))
		return ANY_DISTANCE;
	return rtt->runs[run] < NEAR_NS ? NEAR : FAR;
}

static void copy_figure(struct cell *part, const struct figure *figure, const struct figure *rtt)
{
	bool any = false;
	for (size_t i = 0; i < figure->count; i++)
		any |= distance_of(rtt, i) == part->distance && isfinite(figure->runs[i]);
	for (size_t i = 0; any && i < figure->count; i++)
		cell_add_run(part, figure->name,
			     distance_of(rtt, i) == part->distance ? figure->runs[i] : NAN);
}

/* The cell's runs of that distance, if it has any. */
static void add_part(struct results *out, const struct cell *cell, enum distance distance)
{
	const struct figure *rtt = cell_figure(cell, "rtt_ns");
	bool any = cell->figure_count == 0 && distance == ANY_DISTANCE;
	for (size_t f = 0; f < cell->figure_count; f++)
		for (size_t i = 0; i < cell->figures[f].count; i++)
			any |= distance_of(rtt, i) == distance;
	if (!any)
		return;
	struct cell *part =
	    results_add(out, cell->workload, cell->candidate, cell->n, cell->threads);
	*part = *cell;
	part->distance = distance;
	part->figure_count = 0;
	memset(part->figures, 0, sizeof part->figures);
	for (size_t f = 0; f < cell->figure_count; f++)
		copy_figure(part, &cell->figures[f], rtt);
}

void results_by_distance(struct results *out, const struct results *in)
{
	static const enum distance order[] = {NEAR, FAR, ANY_DISTANCE};
	*out = (struct results){.occasion = in->occasion};
	for (size_t first = 0, end; first < in->count; first = end) {
		for (end = first + 1;
		     end < in->count && cells_meet(in->cells[first], in->cells[end]); end++)
			;
		for (unsigned d = 0; d < sizeof order / sizeof *order; d++)
			for (size_t i = first; i < end; i++)
				add_part(out, in->cells[i], order[d]);
	}
}

bool results_have_distances(const struct results *results)
{
	for (size_t i = 0; i < results->count; i++)
		if (cell_figure(results->cells[i], "rtt_ns"))
			return true;
	return false;
}
