/*
 * The baseline of lateness: a thread that sleeps from tick to tick beside a candidate at work, and
 * does the same small sum in each. What the machine's scheduler adds to every timer shows in it;
 * and in the CPU time that its longest sum took, what the machine (interrupts, a hypervisor) adds
 * to a tick, however even its work. And how lateness becomes figures.
 */
#ifndef BENCH_BASELINE_H
#define BENCH_BASELINE_H

#include <pthread.h>
#include <stdint.h>

#include "bench/outcome.h"
#include "bench/recorder.h"
#include "bench/candidate.h"

struct baseline {
	pthread_t thread;
	uint64_t first_ns, end_ns; /* it sleeps from the one to the other */
	uint64_t cpu_ns;           /* that it used itself, once joined */
	uint64_t sums, sum_cpu_ns, longest_sum_ns;
	struct lateness lateness;
};

void baseline_start(struct baseline *baseline, uint64_t first_ns, uint64_t end_ns,
		    struct outcome *outcome);
void baseline_join(struct baseline *baseline);

/*
 * Of the baseline's sums, as if they were a candidate's ticks: baseline_tick_cpu_mean_ns,
 * baseline_tick_cpu_max_ns.
 */
void set_baseline_ticks(struct outcome *outcome, const struct baseline *baseline);

/*
 * lateness_p50_ns .. lateness_max_ns, baseline_p50_ns .. , and excess_p50_ns .. , what is left
 * without the baseline's.
 */
void set_lateness(struct outcome *outcome, const struct lateness *lateness,
		  const struct lateness *baseline);

/*
 * tick_cpu_mean_ns and tick_cpu_max_ns of the ticks between two views, where the candidate tells.
 */
void set_ticks(struct outcome *outcome, const struct candidate_view *before,
	       const struct candidate_view *after);

/* "early"; one of these or a wrong run is a violation. */
void check_records(const struct records *all, struct outcome *outcome);

#endif
