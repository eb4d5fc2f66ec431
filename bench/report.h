/* What people read: the machine, then a table for each workload. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <stdio.h>

#include "bench/machine.h"
#include "bench/results.h"

void report_machine(FILE *out, const struct machine *machine);
/* Who has stood the trial. */
void report_trials(FILE *out, const struct results *results);

void report_workload(FILE *out, const struct results *results, const struct workload *workload);

/* Footnotes, and what went wrong. */
void report_notes(FILE *out, const struct results *results);

#endif
