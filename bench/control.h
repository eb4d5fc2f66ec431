/*
 * The control of lateness: a thread that sleeps from tick to tick beside a subject at work, and does the same small sum in
 * each. What the machine's scheduler adds to every timer shows in it; and in the CPU time that its longest sum took, what the
 * machine (interrupts, a hypervisor) adds to a tick, however even its work. And how lateness becomes figures.
 */
#ifndef BENCH_CONTROL_H
#define BENCH_CONTROL_H

#include <pthread.h>
#include <stdint.h>

#include "bench/outcome.h"
#include "bench/recorder.h"
#include "bench/subject.h"

struct control {
	pthread_t thread;
	uint64_t first_ns, end_ns; /* it sleeps from the one to the other */
	uint64_t cpu_ns;           /* that it used itself, once joined */
	uint64_t sums, sum_cpu_ns, longest_sum_ns;
	struct lateness lateness;
};

void control_start(struct control *control, uint64_t first_ns, uint64_t end_ns, struct outcome *outcome);
void control_join(struct control *control);

/* Of the control's sums, as if they were a subject's ticks: control_tick_cpu_mean_ns, control_tick_cpu_max_ns. */
void set_control_ticks(struct outcome *outcome, const struct control *control);

/* lateness_p50_ns .. lateness_max_ns, control_p50_ns .. , and excess_p50_ns .. , what is left without the control's. */
void set_lateness(struct outcome *outcome, const struct lateness *lateness, const struct lateness *control);

/* tick_cpu_mean_ns and tick_cpu_max_ns of the ticks between two views, where the subject tells. */
void set_ticks(struct outcome *outcome, const struct subject_view *before, const struct subject_view *after);

/* "early"; one of these or a wrong run is a violation. */
void check_records(const struct records *all, struct outcome *outcome);

#endif
