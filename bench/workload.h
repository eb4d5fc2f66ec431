/* The workloads, and the parameters of one run. bench.py knows their sizes and columns. */
#ifndef BENCH_WORKLOAD_H
#define BENCH_WORKLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/candidate.h"
#include "bench/outcome.h"

struct order {
	const struct candidate *candidate;
	uint32_t n;
	unsigned threads;
	bool quick;
	uint64_t ops; /* fixed work per thread; 0: to be found out */
};

struct workload {
	const char *name;
	unsigned bit; /* enum workload_bit */
	void (*run)(const struct order *order, struct outcome *outcome);
};

extern const struct workload workload_trial, workload_churn, workload_request, workload_touch,
    workload_fire, workload_idle, workload_memory, workload_retention, workload_storm,
    workload_server, workload_periodic, workload_pool, workload_layers, workload_paced;

/* In the order of their names; NULL at the end. */
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
