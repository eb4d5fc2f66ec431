/* Written beside the file, then renamed over it. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "bench/json.h"

static void write_text(FILE *out, const char *text)
{
	fputc('"', out);
	for (const unsigned char *c = (const unsigned char *)text; *c; c++)
		if (*c == '"' || *c == '\\')
			fprintf(out, "\\%c", *c);
		else if (*c < 0x20)
			fprintf(out, "\\u%04x", *c);
		else
			fputc(*c, out);
	fputc('"', out);
}

static void write_number(FILE *out, double number)
{
	if (isfinite(number))
		fprintf(out, "%.10g", number);
	else
		fputs("null", out);
}

static void write_text_field(FILE *out, const char *name, const char *text, const char *after)
{
	fprintf(out, "\"%s\": ", name);
	write_text(out, text);
	fputs(after, out);
}

static void write_machine(FILE *out, const struct machine *machine)
{
	fprintf(out, "{\n\"machine\": {\"cores\": %u, ", machine->cores);
	write_text_field(out, "cpu", machine->cpu, ", ");
	write_text_field(out, "compiler", machine->compiler, ", ");
	write_text_field(out, "commit", machine->commit, ", ");
	fprintf(out, "\"clock_ns\": %.2f, \"cas_ns\": %.2f},\n", machine->clock_ns, machine->cas_ns);
}

static void write_figure(FILE *out, const struct figure *figure)
{
	struct summary summary = figure_summary(figure);
	fprintf(out, ",\n  \"%s\": {\"min\": ", figure->name);
	write_number(out, summary.min);
	fputs(", \"median\": ", out);
	write_number(out, summary.median);
	fputs(", \"max\": ", out);
	write_number(out, summary.max);
	fputs(", \"runs\": [", out);
	for (size_t i = 0; i < figure->count; i++) {
		fputs(i ? ", " : "", out);
		write_number(out, figure->runs[i]);
	}
	fputs("]}", out);
}

/* A cell in trouble is told, too, with what it had found until then. */
static void write_cell(FILE *out, const struct cell *cell)
{
	fprintf(out, " {\"workload\": \"%s\", \"subject\": \"%s\", \"n\": %u, \"threads\": %u", cell->workload->name,
		cell->subject, cell->n, cell->threads);
	if (cell->trouble[0]) {
		fputs(",\n  ", out);
		write_text_field(out, "failure", cell->trouble, "");
	}
	for (size_t i = 0; i < cell->figure_count; i++)
		write_figure(out, &cell->figures[i]);
	fputs("}", out);
}

static void write_cells(FILE *out, const struct results *results)
{
	const char *before = "\n";
	fputs("\"cells\": [", out);
	for (size_t i = 0; i < results->count; i++) {
		const struct cell *cell = results->cells[i];
		if (!cell->finished && !cell->trouble[0])
			continue;
		fputs(before, out);
		write_cell(out, cell);
		before = ",\n";
	}
	fputs("\n]\n}\n", out);
}

int json_write(const char *path, const struct machine *machine, const struct results *results)
{
	char beside[4096];
	int length = snprintf(beside, sizeof beside, "%s.%ld", path, (long)getpid());
	if (length < 0 || (size_t)length >= sizeof beside) {
		errno = ENAMETOOLONG;
		return -1;
	}
	FILE *out = fopen(beside, "we");
	if (!out)
		return -1;
	write_machine(out, machine);
	write_cells(out, results);
	int failed = ferror(out) | fflush(out) | fsync(fileno(out)) | fclose(out);
	if (!failed && rename(beside, path) == 0)
		return 0;
	unlink(beside);
	return -1;
}
