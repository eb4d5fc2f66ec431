/* Cells and their statistics. */
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

struct cell *results_add(struct results *results, const struct workload *workload, const char *subject, uint32_t n,
			 unsigned threads)
{
	struct cell *cell = must(calloc(1, sizeof *cell));
	*cell = (struct cell){.workload = workload, .subject = subject, .n = n, .threads = threads};
	results->cells = must(realloc(results->cells, (results->count + 1) * sizeof *results->cells));
	results->cells[results->count++] = cell;
	return cell;
}

const struct cell *results_find(const struct results *results, const struct workload *workload, const char *subject,
				uint32_t n, unsigned threads)
{
	for (size_t i = 0; i < results->count; i++) {
		const struct cell *c = results->cells[i];
		if (c->workload == workload && c->n == n && c->threads == threads && strcmp(c->subject, subject) == 0)
			return c->finished ? c : NULL;
	}
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

static void add_run(struct cell *cell, const char *name, double value)
{
	struct figure *figure = figure_of(cell, name);
	if (!figure)
		return;
	figure->runs = must(realloc(figure->runs, (figure->count + 1) * sizeof *figure->runs));
	figure->runs[figure->count++] = value;
}

void cell_add_outcome(struct cell *cell, struct cell *control, const struct outcome *outcome)
{
	const char prefix[] = "control_";
	char name[FIGURE_NAME_SIZE + sizeof "lateness_"];
	for (uint32_t i = 0; i < outcome->count; i++) {
		const char *given = outcome->figures[i].name;
		bool of_control = strncmp(given, prefix, sizeof prefix - 1) == 0;
		if (of_control)
			snprintf(name, sizeof name, "lateness_%s", given + sizeof prefix - 1);
		add_run(of_control ? control : cell, of_control ? name : given, outcome->figures[i].value);
	}
	add_run(cell, "violations", outcome->violations);
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

static double median(double *values, size_t count)
{
	qsort(values, count, sizeof *values, compare);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

struct summary figure_summary(const struct figure *figure)
{
	if (figure->count == 0)
		return (struct summary){0};
	double *sorted = must(malloc(figure->count * sizeof *sorted));
	memcpy(sorted, figure->runs, figure->count * sizeof *sorted);
	double middle = median(sorted, figure->count);
	struct summary summary = {.min = sorted[0], .median = middle, .max = sorted[figure->count - 1]};
	free(sorted);
	return summary;
}

double ratio_of_pairs(const struct figure *figure, const struct figure *to)
{
	size_t pairs = 0;
	double *ratios = must(malloc((figure->count + 1) * sizeof *ratios));
	for (size_t i = 0; i < figure->count && i < to->count; i++)
		if (to->runs[i] > 0)
			ratios[pairs++] = figure->runs[i] / to->runs[i];
	double ratio = pairs ? median(ratios, pairs) : 0;
	free(ratios);
	return ratio;
}
