/*
 * Runs one cell once, in a process of its own: no candidate finds the heap, the threads or the peak
 * of memory of another, and one that crashes or hangs takes only its own figures along.
 */
#ifndef BENCH_RUN_H
#define BENCH_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/outcome.h"
#include "bench/workload.h"

/* From here on SIGINT, SIGTERM and SIGHUP end the run under way and are remembered. */
void run_catch_interrupts(void);
bool run_interrupted(void);

/*
 * False: interrupted, there is no outcome. A crash, or running out of time, is a violation in *out.
 */
bool run_apart(const struct workload *workload, const struct order *order, uint64_t limit_ns,
	       struct outcome *out);

#endif
