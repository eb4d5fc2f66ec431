/*
 * What the design wants to reach, medians on a 2-core machine whose clock read costs 22 ns and
 * whose compare-and-swap 4.8 ns. Printed beside the figures and never tested: machines differ.
 */
#ifndef BENCH_TARGETS_H
#define BENCH_TARGETS_H

#include <stdint.h>

#define REFERENCE_CLOCK_NS 22.0
#define REFERENCE_CAS_NS 4.8

/* "" where there is none. */
const char *target_text(const char *workload, const char *candidate, uint32_t n, unsigned threads);

#endif
