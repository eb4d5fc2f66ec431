/*
 * results.json: an object.
 *   machine   cores, cpu, compiler, commit, clock_ns, cas_ns, first_touch_ns
 *   occasion  mode ("quick", "default", "full", "growth", "quick growth"), when, complete, took_s,
 *       others_cpu_s, stolen_s
 *   cells     a list of objects, a line each: workload, candidate, kind ("safe": thread-safe;
 *             "bare", "floor", "baseline"), n, threads, and figures by name, each an object
 *             {"min":, "median":, "max":, "runs": []}. Finished cells only; but one in which a
 *             candidate broke a promise, crashed or hung is always there, and says so in a string,
 *             "failure".
 */
#ifndef BENCH_RESULTS_FILE_H
#define BENCH_RESULTS_FILE_H

#include "bench/machine.h"
#include "bench/results.h"

/* 0, or -1 with errno; then the old file, if there is one, stays. */
int results_write(const char *path, const struct machine *machine, const struct results *results);

/*
 * False: it cannot be read or is no such file; stderr knows why. Workloads that this program does
 * not have are made up.
 */
bool results_read(const char *path, struct machine *machine, struct results *results);

#endif
