/* The workloads, and the parameters of one run. */
#ifndef BENCH_WORKLOAD_H
#define BENCH_WORKLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/outcome.h"
#include "bench/candidate.h"

struct order {
	const struct candidate *candidate;
	uint32_t n;
	unsigned threads;
	bool quick;
	uint64_t ops; /* fixed work per thread; 0: to be found out */
};

/*
 * A column of the table: a figure, in which unit. The first of a workload is the one that ratios
 * are made of.
 */
struct column {
	const char *figure, *heading;
	double unit;
	int decimals;
};

enum { MAX_COLUMNS = 8, MAX_SIZES = 8 };

struct workload {
	const char *name, *title;
	unsigned bit; /* enum workload_bit */
	void (*run)(const struct order *order, struct outcome *outcome);
	const char *(*size_label)(uint32_t n); /* NULL: the number */
	bool many_threads;                     /* else run with one */
	bool fixed_sizes;                      /* --n does not apply */
	bool named_only;                       /* runs only if --only names it */
	/* --growth: also as curves over n, and over threads if many */
	bool grows;
	uint32_t curve_n; /* the n of the curve over threads */
	unsigned quick_reps, reps;
	/* about how long a run takes besides what grows with n: for the time left, and the limit */
	double quick_s, s;
	double s_per_timer; /* what grows with n; 0: as usual, to create and fill the candidate */
	/* Those for peers only where they are among the others. Each ended by NO_MORE_SIZES. */
	uint32_t quick_sizes[MAX_SIZES], sizes[MAX_SIZES], quick_peer_sizes[MAX_SIZES],
	    peer_sizes[MAX_SIZES];
	struct column columns[MAX_COLUMNS]; /* ended by NULL */
};

#define NO_MORE_SIZES UINT32_MAX

extern const struct workload workload_churn, workload_request, workload_touch, workload_fire,
    workload_idle, workload_memory, workload_retention, workload_storm, workload_server,
    workload_periodic, workload_pool, workload_layers, workload_apart;

/* No measurement: see trial.c. */
extern const struct workload workload_trial;

/* W1 .. ; NULL at the end. */
extern const struct workload *const all_workloads[];
const struct workload *workload_find(const char *name);

#define SECOND_NS UINT64_C(1000000000)
#define MILLISECOND_NS UINT64_C(1000000)

/* The candidate for the order; ends the run if it cannot be had. */
void *make_candidate(const struct order *order, uint32_t slots, struct outcome *outcome);

/* Sets up what all flat-out workloads share: how long to warm up and to measure. */
struct load;
struct load_thread;
void load_set_up(struct load *load, const struct order *order, void *self);

/* A whole flat-out run: creates a candidate with `slots` slots, fills it, then works on it. */
void run_load(const struct order *order, uint32_t slots, void (*fill)(struct load_thread *),
	      void (*work)(struct load_thread *, uint64_t ops), struct outcome *outcome);

/* Schedules the slots 0 .. n - 1 from this thread, uniformly between the two delays. */
void fill_slots(const struct order *order, void *self, uint64_t from_ns, uint64_t to_ns,
		struct outcome *outcome);

#endif
