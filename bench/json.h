/*
 * results.json: an object.
 *   machine  cores, cpu, compiler, commit, clock_ns, cas_ns
 *   cells    a list of objects: workload, subject, n, threads, and figures by name, each an object
 *            {"min":, "median":, "max":, "runs": []}. Finished cells only; but one in which a subject broke a promise,
 *            crashed or hung is always there, and says so in a string, "failure".
 */
#ifndef BENCH_JSON_H
#define BENCH_JSON_H

#include "bench/machine.h"
#include "bench/results.h"

/* Replaces the file as a whole: who reads it sees the old or the new. 0, or -1 with errno. */
int json_write(const char *path, const struct machine *machine, const struct results *results);

#endif
