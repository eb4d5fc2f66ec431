/* The list of workloads, and what they share. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/load.h"
#include "bench/workload.h"

const struct workload *const all_workloads[] = {
    &workload_trial,    &workload_churn,  &workload_request,   &workload_touch, &workload_fire,
    &workload_idle,     &workload_memory, &workload_retention, &workload_storm, &workload_server,
    &workload_periodic, &workload_pool,   &workload_layers,    &workload_paced, NULL};

const struct workload *workload_find(const char *name)
{
	for (const struct workload *const *w = all_workloads; *w; w++)
		if (strcmp((*w)->name, name) == 0)
			return *w;
	return NULL;
}

void *make_candidate(const struct order *order, uint32_t slots, struct outcome *outcome)
{
	struct candidate_setup setup = {.slots = slots, .threads = order->threads};
	uint32_t most = candidate_most_slots(order->candidate);
	if (slots > most) {
		printf("skipped it takes at most %u timers here\nend\n", most);
		exit(EXIT_SUCCESS);
	}
	void *self = order->candidate->create(&setup);
	if (!self)
		outcome_fail(outcome, "%s could not be created", order->candidate->name);
	return self;
}

void load_set_up(struct load *load, const struct order *order, void *self)
{
	*load = (struct load){
	    .candidate = order->candidate,
	    .self = self,
	    .threads = order->threads,
	    .ops = order->ops,
	    .warm_up_ns = (order->quick ? 40 : 100) * MILLISECOND_NS,
	    .warm_up_most_ns = (order->quick ? 500 : 3000) * MILLISECOND_NS,
	    /* Five repetitions together: a second, and up to three for five million operations. */
	    .target_ns = (order->quick ? 100 : 200) * MILLISECOND_NS,
	    .least_ops = order->quick ? 0 : 1000000,
	};
}

void run_load(const struct order *order, uint32_t slots, void (*fill)(struct load_thread *),
	      void (*work)(struct load_thread *, uint64_t ops), struct outcome *outcome)
{
	struct load load;
	void *self = make_candidate(order, slots, outcome);
	load_set_up(&load, order, self);
	load.fill = fill;
	load.work = work;
	load_run(&load, slots, outcome);
	order->candidate->destroy(self);
}

void fill_slots(const struct order *order, void *self, uint64_t from_ns, uint64_t to_ns,
		struct outcome *outcome)
{
	const struct candidate *candidate = order->candidate;
	struct random random = {.state = 1};
	for (uint32_t slot = 0; slot < order->n;) {
		uint64_t delay = random_between(random_next(&random), from_ns, to_ns),
			 now = now_ns();
		if (candidate->turn)
			candidate->turn(self, 0, now);
		int answer = candidate->schedule(self, 0, slot, delay, record_deadline,
						 (void *)(uintptr_t)(now + delay));
		if (answer == 0)
			slot++;
		else if (answer == -EAGAIN)
			sched_yield();
		else
			outcome_fail(outcome, "schedule refused: %s", strerror(-answer));
	}
}
