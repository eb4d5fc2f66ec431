/*
 * What is to be run, in which order. A group is one workload with one n and one number of threads:
 * its candidates take turns, A B C A B C, so that a machine that drifts drifts for all.
 */
#ifndef BENCH_PLAN_H
#define BENCH_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/options.h"
#include "bench/workload.h"

enum { MAX_CANDIDATES = 64 };

struct group {
	const struct workload *workload;
	uint32_t n;
	unsigned threads, reps;
	unsigned candidate_count;
	const struct candidate *candidates[MAX_CANDIDATES];
	unsigned runs; /* of all candidates together */
	double run_s;  /* about how long a run takes */
};

struct plan {
	size_t count;
	struct group *groups;
};

/* Skips what does not fit into this machine's memory, with a word on stderr. */
void plan_make(struct plan *plan, const struct options *options);

double plan_group_s(const struct group *group);

/* Repetitions of this candidate in the group. */
unsigned plan_reps(const struct group *group, const struct candidate *candidate,
		   const struct options *options);

/* The candidate takes part in a group. */
bool plan_has(const struct plan *plan, const struct candidate *candidate);

#endif
