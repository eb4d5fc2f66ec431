/*
 * What the bench has found so far: a cell per workload, candidate, n and threads, with each
 * figure's value of each run. A baseline of lateness is a cell of its own, fed by the runs of all
 * candidates beside which it slept.
 */
#ifndef BENCH_RESULTS_H
#define BENCH_RESULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/outcome.h"
#include "bench/workload.h"

/*
 * How far apart the bench's two processors were in a run, by its figure rtt_ns: the longer of the
 * round trips of a cache line before and after it. A hypervisor may move them within one bench.
 */
enum distance { ANY_DISTANCE, NEAR, FAR };

#define NEAR_NS 120

/* The value of each run in order, or NAN: this run has none. */
struct figure {
	char name[FIGURE_NAME_SIZE];
	size_t count;
	double *runs;
};

struct cell {
	const struct workload *workload;
	const char *candidate; /* its name; "baseline" */
	/* "safe": may be used by several threads; "bare", "floor", "baseline" */
	const char *kind;
	uint32_t n;
	unsigned threads;
	enum distance distance; /* ANY_DISTANCE in what was measured; see results_by_distance */
	size_t figure_count;
	struct figure figures[OUTCOME_FIGURES];
	uint64_t ops;  /* fixed work per thread, once known */
	bool lost;     /* a run crashed or hung: no further ones are tried */
	bool finished; /* all repetitions are in; only such cells are results */
	char trouble[TROUBLE_SIZE];
};

/* Of the run that the results are of. */
struct occasion {
	char mode[16], when[32]; /* options_mode(); UTC */
	bool complete;
	double took_s, others_cpu_s, stolen_s;
};

/* Others had more than a tenth of a CPU meanwhile. */
bool occasion_was_busy(const struct occasion *occasion);

struct results {
	struct occasion occasion;
	size_t count;
	struct cell **cells;
};

/* All 0 if no run has a value. */
struct summary {
	size_t count;
	double min, median, max;
};

/* Never NULL: ends the program if there is no memory. */
struct cell *results_add(struct results *results, const struct workload *workload,
			 const char *candidate, uint32_t n, unsigned threads);

/*
 * The cell of the same candidate that meets this one. NULL: there is none, or it is not finished.
 */
const struct cell *results_twin(const struct results *results, const struct cell *cell);

/* One of ours, whatever its variant. */
bool cell_is_ours(const struct cell *cell);

/* All repetitions are in, and the candidate kept its promises. */
bool cell_stands(const struct cell *cell);

/* same workload, n, threads, distance */
bool cells_meet(const struct cell *a, const struct cell *b);

/*
 * The near cells of each group, the far ones, and those whose runs have no round trip. Never freed.
 */
void results_by_distance(struct results *out, const struct results *in);

/* Whether any run has a round trip. */
bool results_have_distances(const struct results *results);

/* Whom the cell is compared with: the first of ours that met the same work. NULL: none. */
const struct cell *results_base(const struct results *results, const struct cell *cell);

/* False: there is no room for another figure. */
bool cell_add_run(struct cell *cell, const char *figure, double value);

/* Figures named baseline_* go to the baseline's cell as lateness_*. */
void cell_add_outcome(struct cell *cell, struct cell *baseline, const struct outcome *outcome);

const struct figure *cell_figure(const struct cell *cell, const char *name);
struct summary figure_summary(const struct figure *figure);
double median_of(double *values, size_t count); /* sorts them */

/* The median of the ratios run by run, of runs that both have; 0 if there is nothing to compare. */
double ratio_of_pairs(const struct figure *figure, const struct figure *to);

#endif
