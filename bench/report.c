/* What stands around the tables. */
#include <string.h>

#include "bench/report.h"
#include "bench/table.h"
#include "bench/targets.h"

void report_machine(FILE *out, const struct machine *machine)
{
	fprintf(out, "cpu          %s, %u cores\n", machine->cpu, machine->cores);
	fprintf(out, "compiler     %s\n", machine->compiler);
	fprintf(out, "commit       %s\n", machine->commit);
	fprintf(
	    out,
	    "clock        %.1f ns a reading (on the machine that the targets come from: %.0f ns)\n",
	    machine->clock_ns, REFERENCE_CLOCK_NS);
	fprintf(out, "cas          %.1f ns, uncontended (there: %.1f ns)\n", machine->cas_ns,
		REFERENCE_CAS_NS);
	fprintf(out,
		"first touch  %.0f ns a page of 4 KiB; no part of any figure below but memory\n",
		machine->first_touch_ns);
}

void report_trials(FILE *out, const struct results *results)
{
	const size_t indent = strlen("trial        "), most = 100;
	size_t column = 0;
	for (size_t i = 0; i < results->count; i++) {
		const struct cell *cell = results->cells[i];
		if (cell->workload != &workload_trial || cell->trouble[0])
			continue;
		bool first = column == 0, full = column + strlen(cell->candidate) + 2 > most;
		const char *before = first  ? "trial        passed by "
				     : full ? ",\n             "
					    : ", ";
		fprintf(out, "%s%s", before, cell->candidate);
		column = (first  ? strlen(before)
			  : full ? indent
				 : column + 2) +
			 strlen(cell->candidate);
	}
	if (column > 0)
		fputs(":\n             each timer ran once and not early, or was cancelled and did "
		      "not run\n",
		      out);
	fflush(out);
}

void report_workload(FILE *out, const struct results *results, const struct workload *workload)
{
	struct table table;
	table_make(&table, results, workload, false);
	if (table.row_count > 1) {
		fprintf(out, "\n%s %s\n", workload->name, workload->title);
		table_print(out, &table);
	}
	table_free(&table);
	fflush(out);
}

static void print_failures(FILE *out, const struct results *results)
{
	for (size_t i = 0; i < results->count; i++) {
		const struct cell *c = results->cells[i];
		if (c->trouble[0])
			fprintf(out, "FAILED: %s %s n=%u threads=%u: %s\n", c->workload->name,
				c->candidate, c->n, c->threads, c->trouble);
	}
}

static void print_disturbance(FILE *out, const struct occasion *occasion)
{
	fprintf(out,
		"It took %.0f s. Meanwhile other processes used %.1f s of CPU time, and the "
		"hypervisor took %.1f s.\n",
		occasion->took_s, occasion->others_cpu_s, occasion->stolen_s);
	if (occasion_was_busy(occasion))
		fputs("The machine was busy: wall times and lateness are inflated, CPU times less "
		      "so.\n",
		      out);
	if (!occasion->complete)
		fputs("It was not finished: cells that were not are left out.\n", out);
}

void report_notes(FILE *out, const struct results *results)
{
	fputs("\nMedians. near, far: a cache line took less than 120 ns, or more, from one "
	      "processor to the other and\n"
	      "back, before and after the run (rtt_ns in the results). ratio: the first figure to "
	      "ours, the first row "
	      "of\n"
	      "the group, pair by pair; above 1: slower, or more.\n"
	      "ns/op: wall time of each thread; cpu: of the whole process. safe: may be used by "
	      "several threads; bare: "
	      "no\n"
	      "lock and one thread, which reads the clock once for 64 operations; floor: does no "
	      "more than touch the\n"
	      "memory that must be touched, and the aim is a ratio of 0.50 or more there. aim: the "
	      "design's, for ours.\n",
	      out);
	print_disturbance(out, &results->occasion);
	print_failures(out, results);
	fflush(out);
}
