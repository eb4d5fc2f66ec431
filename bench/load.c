/*
 * The threads of the load, and its ledger. Waiting and checking happen outside the measured part.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "bench/ledger.h"
#include "bench/baseline.h"
#include "bench/load.h"

enum { CHUNK = OPS_PER_TURN * 16 };

void load_schedule_again(struct load_thread *t, uint32_t slot, uint64_t delay_ns, int answer)
{
	while (answer == -EAGAIN) {
		t->retries++;
		sched_yield();
		answer = t->schedule(t->self, t->index, slot, delay_ns, record_deadline,
				     load_arg(t, delay_ns));
	}
	if (answer != 0) {
		t->scheduled--;
		t->error = answer;
	}
}

/*
 * Works in chunks for so long, and then on for some operations more, but not beyond most_ns; the
 * operations done.
 */
static uint64_t work_for(struct load_thread *t, uint64_t duration_ns, uint64_t least_ops,
			 uint64_t most_ns)
{
	uint64_t ops = 0, start = now_ns(), elapsed = 0;
	while (elapsed < duration_ns || (ops < least_ops && elapsed < most_ns)) {
		t->load->work(t, CHUNK);
		ops += CHUNK;
		elapsed = now_ns() - start;
	}
	return ops;
}

static uint64_t fitting_ops(const struct load *h, double ops_per_ns)
{
	double fitting = ops_per_ns * (double)h->target_ns;
	double least = (double)h->least_ops / h->threads;
	if (fitting < least)
		fitting = least < 3 * fitting ? least : 3 * fitting;
	return ((uint64_t)fitting / OPS_PER_TURN + 1) * OPS_PER_TURN;
}

/* Operations per nanosecond. */
static double warm_up(struct load_thread *t)
{
	uint64_t start = now_ns();
	uint64_t ops = work_for(t, t->load->warm_up_ns, t->slots, t->load->warm_up_most_ns);
	return (double)ops / (double)(now_ns() - start);
}

/* With more threads than cores, not all threads can start at the same time. */
static uint64_t first_start_ns(const struct load *h)
{
	uint64_t first = UINT64_MAX;
	for (unsigned i = 0; i < h->threads; i++)
		if (h->per_thread[i].started_ns < first)
			first = h->per_thread[i].started_ns;
	return first;
}

static void *thread_member(void *me)
{
	struct load_thread *t = me;
	struct load *h = t->load;
	load_turn(t);
	h->fill(t);
	pthread_barrier_wait(&h->barrier);
	double speed = h->warm_up_ns ? warm_up(t) : 0;
	pthread_barrier_wait(&h->barrier);
	if (t->index == 0 && h->ops == 0 && !h->duration_ns)
		h->ops = fitting_ops(h, speed);
	uint64_t cpu = process_cpu_ns();
	pthread_barrier_wait(&h->barrier);
	t->started_ns = now_ns();
	if (h->duration_ns)
		t->ops = work_for(t, h->duration_ns, 0, 0);
	else
		h->work(t, t->ops = h->ops);
	pthread_barrier_wait(&h->barrier);
	if (t->index == 0) {
		h->wall_ns = now_ns() - first_start_ns(h);
		h->cpu_ns = process_cpu_ns() - cpu;
	}
	return NULL;
}

static void start_threads(struct load *h, uint32_t slots, struct outcome *outcome)
{
	h->per_thread = touched_array(h->threads, sizeof *h->per_thread);
	if (!h->per_thread || pthread_barrier_init(&h->barrier, NULL, h->threads))
		outcome_fail(outcome, "no memory for the bench's threads");
	for (unsigned i = 0; i < h->threads; i++) {
		struct load_thread *t = &h->per_thread[i];
		t->load = h;
		t->self = h->self;
		t->schedule = h->candidate->schedule;
		t->cancel = h->candidate->cancel;
		t->touch = h->candidate->touch;
		t->index = i;
		t->slots = slots / h->threads;
		t->first = i * t->slots;
		t->random.state = i + 1;
		if (pthread_create(&t->thread, NULL, thread_member, t))
			outcome_fail(outcome, "no thread: %s", strerror(errno));
	}
}

static void check_threads(const struct load *h, struct outcome *outcome)
{
	static struct records all;
	uint64_t scheduled = 0, cancelled = 0;
	for (unsigned i = 0; i < h->threads; i++) {
		scheduled += h->per_thread[i].scheduled;
		cancelled += h->per_thread[i].cancelled;
		if (h->per_thread[i].error)
			outcome_violation(outcome, "schedule refused: %s",
					  strerror(-h->per_thread[i].error));
	}
	check_ledger(h->candidate, h->self, scheduled, cancelled, outcome);
	recorded(&all);
	check_records(&all, outcome);
}

void load_run(struct load *h, uint32_t slots, struct outcome *outcome)
{
	start_threads(h, slots, outcome);
	uint64_t retries = 0;
	for (unsigned i = 0; i < h->threads; i++) {
		pthread_join(h->per_thread[i].thread, NULL);
		h->done += h->per_thread[i].ops;
		retries += h->per_thread[i].retries;
	}
	outcome->ops = h->ops;
	outcome_set(outcome, "ns_per_op", (double)h->wall_ns * h->threads / (double)h->done);
	outcome_set(outcome, "cpu_ns_per_op", (double)h->cpu_ns / (double)h->done);
	outcome_set(outcome, "ops", (double)h->done);
	outcome_set(outcome, "retries", (double)retries);
	check_threads(h, outcome);
	pthread_barrier_destroy(&h->barrier);
	free(h->per_thread);
}
