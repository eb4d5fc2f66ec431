/*
 * What one run of one cell has found out: figures by name, and what went wrong. Travels through a
 * pipe as it is.
 */
#ifndef BENCH_OUTCOME_H
#define BENCH_OUTCOME_H

#include <stdint.h>

enum { FIGURE_NAME_SIZE = 32, OUTCOME_FIGURES = 24, TROUBLE_SIZE = 240 };

struct outcome {
	uint32_t count;
	uint32_t violations; /* the candidate broke a promise: the figures stand, the bench fails */
	uint64_t ops;        /* fixed work that was found to fit, per thread; for the repetitions */
	struct {
		char name[FIGURE_NAME_SIZE];
		double value;
	} figures[OUTCOME_FIGURES];
	char trouble[TROUBLE_SIZE]; /* the first thing that went wrong; empty: nothing */
};

void outcome_set(struct outcome *outcome, const char *name, double value);

__attribute__((format(printf, 2, 3))) void outcome_violation(struct outcome *outcome,
							     const char *format, ...);

/*
 * The run cannot go on: told to the parent, ends this process. To be used in a run's own process
 * only.
 */
__attribute__((format(printf, 2, 3))) _Noreturn void outcome_fail(struct outcome *outcome,
								  const char *format, ...);

/* Where this process's outcome goes; 0: told. */
void outcome_send_to(int descriptor);
int outcome_send(const struct outcome *outcome);

#endif
