/* What a run finds out, as lines of standard output: figure NAME VALUE, ops N, trouble TEXT. */
#ifndef BENCH_OUTCOME_H
#define BENCH_OUTCOME_H

#include <stdint.h>

struct outcome {
	uint64_t ops; /* fixed work per thread that was found to fit; for the repetitions */
	uint32_t violations;
};

void outcome_set(struct outcome *outcome, const char *name, double value);

/* The candidate broke a promise: the figures stand, the bench fails. */
__attribute__((format(printf, 2, 3))) void outcome_violation(struct outcome *outcome,
							     const char *format, ...);

/* The run cannot go on: ends this process. */
__attribute__((format(printf, 2, 3))) _Noreturn void outcome_fail(struct outcome *outcome,
								  const char *format, ...);

#endif
