/*
 * By way of jansson. What is read may have been edited by hand or come from another version:
 * everything is checked.
 */
#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/replace.h"
#include "bench/results_file.h"
#include "bench/rivals/rival.h"

/* ---- writing */

static void put(json_t *object, const char *key, json_t *value)
{
	if (json_object_set_new(object, key, value) == 0)
		return;
	fputs("bench: no memory\n", stderr);
	exit(EXIT_FAILURE);
}

static json_t *number(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

/* What is not UTF-8 cannot stand in JSON. */
static json_t *text(const char *string)
{
	json_t *value = json_string(string);
	return value ? value : json_string("?");
}

static json_t *machine_object(const struct machine *machine)
{
	json_t *object = json_object();
	put(object, "cores", json_integer(machine->cores));
	put(object, "cpu", text(machine->cpu));
	put(object, "compiler", text(machine->compiler));
	put(object, "commit", text(machine->commit));
	put(object, "clock_ns", number(machine->clock_ns));
	put(object, "cas_ns", number(machine->cas_ns));
	put(object, "first_touch_ns", number(machine->first_touch_ns));
	return object;
}

static json_t *occasion_object(const struct occasion *occasion)
{
	json_t *object = json_object();
	put(object, "mode", text(occasion->mode));
	put(object, "when", text(occasion->when));
	put(object, "rivals_skipped", json_integer(rivals_skipped()));
	put(object, "complete", json_boolean(occasion->complete));
	put(object, "took_s", number(occasion->took_s));
	put(object, "others_cpu_s", number(occasion->others_cpu_s));
	put(object, "stolen_s", number(occasion->stolen_s));
	return object;
}

static json_t *figure_object(const struct figure *figure)
{
	struct summary summary = figure_summary(figure);
	json_t *object = json_object(), *runs = json_array();
	for (size_t i = 0; i < figure->count; i++)
		json_array_append_new(runs, number(figure->runs[i]));
	put(object, "min", number(summary.min));
	put(object, "median", number(summary.median));
	put(object, "max", number(summary.max));
	put(object, "runs", runs);
	return object;
}

static json_t *cell_object(const struct cell *cell)
{
	json_t *object = json_object();
	put(object, "workload", text(cell->workload->name));
	put(object, "candidate", text(cell->candidate));
	put(object, "kind", text(cell->kind));
	put(object, "n", json_integer(cell->n));
	put(object, "threads", json_integer(cell->threads));
	if (cell->trouble[0])
		put(object, "failure", text(cell->trouble));
	for (size_t i = 0; i < cell->figure_count; i++)
		put(object, cell->figures[i].name, figure_object(&cell->figures[i]));
	return object;
}

static void dump(FILE *out, const char *before, json_t *value)
{
	fputs(before, out);
	json_dumpf(value, out, JSON_REAL_PRECISION(10));
	json_decref(value);
}

int results_write(const char *path, const struct machine *machine, const struct results *results)
{
	struct replacement replacement;
	if (replace_begin(&replacement, path) < 0)
		return -1;
	FILE *out = replacement.file;
	const char *before = "\n";
	dump(out, "{\n\"machine\": ", machine_object(machine));
	dump(out, ",\n\"occasion\": ", occasion_object(&results->occasion));
	fputs(",\n\"cells\": [", out);
	for (size_t i = 0; i < results->count; i++) {
		const struct cell *cell = results->cells[i];
		if (!cell->finished && !cell->trouble[0])
			continue;
		dump(out, before, cell_object(cell));
		before = ",\n";
	}
	fputs("\n]\n}\n", out);
	return replace_end(&replacement);
}

/* ---- reading */

struct reading {
	const char *path;
	struct results *results;
};

static bool malformed(const struct reading *reading, const char *where, const char *what)
{
	fprintf(stderr, "bench: %s is not a results file of the bench: %s%s\n", reading->path,
		where, what);
	return false;
}

/*
 * Names go into file names, pages and gnuplot's scripts: what could mean something there is no
 * name.
 */
static bool is_name(const char *text, size_t size)
{
	size_t length = strlen(text);
	for (const char *c = text; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("-_.+", *c))
			return false;
	return length > 0 && length < size;
}

static char *copy_of(const char *text)
{
	char *copy = strdup(text);
	if (!copy)
		abort();
	return copy;
}

/* One for each name that this program does not know; never freed. */
static const struct workload *made_up_workload(const char *name, const char *first_figure)
{
	static struct made_up {
		struct workload workload;
		struct made_up *next;
	} * all;
	for (struct made_up *made = all; made; made = made->next)
		if (strcmp(made->workload.name, name) == 0)
			return &made->workload;
	struct made_up *made = calloc(1, sizeof *made);
	if (!made)
		abort();
	const char *figure = copy_of(first_figure);
	made->workload = (struct workload){.name = copy_of(name),
					   .title = "(this version does not know it)",
					   .columns = {{figure, figure, 1, 1}}};
	made->next = all;
	all = made;
	return &made->workload;
}

static const char *first_figure(json_t *object)
{
	const char *key;
	json_t *value;
	json_object_foreach(object, key, value) if (json_is_object(value)) return key;
	return "violations";
}

static const struct workload *workload_of(json_t *object, const char *name)
{
	if (strcmp(name, workload_trial.name) == 0)
		return &workload_trial;
	const struct workload *known = workload_find(name);
	return known ? known : made_up_workload(name, first_figure(object));
}

static bool read_figure(const struct reading *reading, struct cell *cell, const char *name,
			json_t *object)
{
	json_t *runs = json_object_get(object, "runs"), *run;
	size_t i;
	if (!is_name(name, FIGURE_NAME_SIZE))
		return malformed(reading, "no name of a figure: ", name);
	if (!json_is_array(runs))
		return malformed(reading, "no runs in figure ", name);
	json_array_foreach(runs, i, run)
	{
		if (!json_is_null(run) && !json_is_number(run))
			return malformed(reading, "a run that is no number in figure ", name);
		if (!cell_add_run(cell, name, json_is_null(run) ? NAN : json_number_value(run)))
			return malformed(reading, "too many figures, from ", name);
	}
	return true;
}

static bool read_figures(const struct reading *reading, struct cell *cell, json_t *object)
{
	const char *key;
	json_t *value;
	json_object_foreach(object, key,
			    value) if (json_is_object(value) &&
				       !read_figure(reading, cell, key, value)) return false;
	cell->finished = cell->figure_count > 0 && cell->workload != &workload_trial;
	return true;
}

static bool read_cell(const struct reading *reading, json_t *object)
{
	const char *workload, *candidate, *kind = NULL, *failure = "";
	json_int_t n, threads;
	json_error_t error;
	if (json_unpack_ex(object, &error, 0, "{s:s, s:s, s?s, s:I, s:I, s?s}", "workload",
			   &workload, "candidate", &candidate, "kind", &kind, "n", &n, "threads",
			   &threads, "failure", &failure) < 0)
		return malformed(reading, "a cell: ", error.text);
	if (!is_name(workload, FIGURE_NAME_SIZE) || !is_name(candidate, FIGURE_NAME_SIZE))
		return malformed(reading, "no name of a workload or candidate: ", workload);
	if (n < 0 || n > UINT32_MAX || threads < 1 || threads > UINT16_MAX)
		return malformed(reading, "n or threads out of range in a cell of ", workload);
	struct cell *cell = results_add(reading->results, workload_of(object, workload),
					copy_of(candidate), (uint32_t)n, (unsigned)threads);
	if (kind)
		cell->kind = copy_of(kind);
	snprintf(cell->trouble, sizeof cell->trouble, "%s", failure);
	return read_figures(reading, cell, object);
}

static bool read_cells(const struct reading *reading, json_t *cells)
{
	size_t i;
	json_t *cell;
	if (!json_is_array(cells))
		return malformed(reading, "", "it has no list of cells");
	json_array_foreach(cells, i, cell) if (!read_cell(reading, cell)) return false;
	return true;
}

static bool read_machine(const struct reading *reading, json_t *object, struct machine *machine)
{
	const char *cpu, *compiler, *commit;
	json_error_t error;
	json_int_t cores;
	*machine = (struct machine){0};
	if (json_unpack_ex(object, &error, 0, "{s:I, s:s, s:s, s:s, s:F, s:F, s?F}", "cores",
			   &cores, "cpu", &cpu, "compiler", &compiler, "commit", &commit,
			   "clock_ns", &machine->clock_ns, "cas_ns", &machine->cas_ns,
			   "first_touch_ns", &machine->first_touch_ns) < 0)
		return malformed(reading, "machine: ", error.text);
	machine->cores = (unsigned)cores;
	snprintf(machine->cpu, sizeof machine->cpu, "%s", cpu);
	snprintf(machine->compiler, sizeof machine->compiler, "%s", compiler);
	snprintf(machine->commit, sizeof machine->commit, "%s", commit);
	return true;
}

/* Older files have none. */
static bool read_occasion(const struct reading *reading, json_t *object)
{
	struct occasion *occasion = &reading->results->occasion;
	const char *mode, *when;
	int complete;
	json_error_t error;
	if (!object)
		return true;
	if (json_unpack_ex(object, &error, 0, "{s:s, s:s, s:b, s:F, s:F, s:F}", "mode", &mode,
			   "when", &when, "complete", &complete, "took_s", &occasion->took_s,
			   "others_cpu_s", &occasion->others_cpu_s, "stolen_s",
			   &occasion->stolen_s) < 0)
		return malformed(reading, "occasion: ", error.text);
	snprintf(occasion->mode, sizeof occasion->mode, "%s", mode);
	snprintf(occasion->when, sizeof occasion->when, "%s", when);
	occasion->complete = complete;
	return true;
}

bool results_read(const char *path, struct machine *machine, struct results *results)
{
	struct reading reading = {.path = path, .results = results};
	json_error_t error;
	*results = (struct results){0};
	FILE *file = fopen(path, "re");
	if (!file) {
		fprintf(stderr, "bench: %s cannot be read: %s\n", path, strerror(errno));
		return false;
	}
	json_t *root = json_loadf(file, JSON_REJECT_DUPLICATES, &error);
	fclose(file);
	if (!root) {
		fprintf(stderr, "bench: %s is not JSON: line %d: %s\n", path, error.line,
			error.text);
		return false;
	}
	bool fine = read_machine(&reading, json_object_get(root, "machine"), machine) &&
		    read_occasion(&reading, json_object_get(root, "occasion")) &&
		    read_cells(&reading, json_object_get(root, "cells"));
	json_decref(root);
	return fine;
}
