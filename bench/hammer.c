/* The threads of the hammer, and its bookkeeping. Waiting and checking happen outside the measured part. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "bench/books.h"
#include "bench/control.h"
#include "bench/hammer.h"

enum { CHUNK = OPS_PER_TURN * 16 };

void hammer_schedule_again(struct hammer_thread *t, uint32_t slot, uint64_t delay_ns, int answer)
{
	while (answer == -EAGAIN) {
		t->retries++;
		sched_yield();
		answer = t->schedule(t->self, t->index, slot, delay_ns, record_deadline, hammer_arg(t, delay_ns));
	}
	if (answer != 0) {
		t->scheduled--;
		t->error = answer;
	}
}

/* Works in chunks for so long, and then on for some operations more, but not beyond most_ns; the operations done. */
static uint64_t work_for(struct hammer_thread *t, uint64_t duration_ns, uint64_t least_ops, uint64_t most_ns)
{
	uint64_t ops = 0, start = now_ns(), elapsed = 0;
	while (elapsed < duration_ns || (ops < least_ops && elapsed < most_ns)) {
		t->hammer->work(t, CHUNK);
		ops += CHUNK;
		elapsed = now_ns() - start;
	}
	return ops;
}

static uint64_t fitting_ops(const struct hammer *h, double ops_per_ns)
{
	double fitting = ops_per_ns * (double)h->target_ns;
	double least = (double)h->least_ops / h->threads;
	if (fitting < least)
		fitting = least < 3 * fitting ? least : 3 * fitting;
	return ((uint64_t)fitting / OPS_PER_TURN + 1) * OPS_PER_TURN;
}

/* Operations per nanosecond. */
static double warm_up(struct hammer_thread *t)
{
	uint64_t start = now_ns();
	uint64_t ops = work_for(t, t->hammer->warm_up_ns, t->slots, t->hammer->warm_up_most_ns);
	return (double)ops / (double)(now_ns() - start);
}

/* With more threads than cores, not all can start at once. */
static uint64_t first_start_ns(const struct hammer *h)
{
	uint64_t first = UINT64_MAX;
	for (unsigned i = 0; i < h->threads; i++)
		if (h->crew[i].started_ns < first)
			first = h->crew[i].started_ns;
	return first;
}

static void *crew_member(void *me)
{
	struct hammer_thread *t = me;
	struct hammer *h = t->hammer;
	hammer_turn(t);
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

static void start_crew(struct hammer *h, uint32_t slots, struct outcome *outcome)
{
	h->crew = touched_array(h->threads, sizeof *h->crew);
	if (!h->crew || pthread_barrier_init(&h->barrier, NULL, h->threads))
		outcome_fail(outcome, "no memory for the bench's threads");
	for (unsigned i = 0; i < h->threads; i++) {
		struct hammer_thread *t = &h->crew[i];
		t->hammer = h;
		t->self = h->self;
		t->schedule = h->subject->schedule;
		t->cancel = h->subject->cancel;
		t->touch = h->subject->touch;
		t->index = i;
		t->slots = slots / h->threads;
		t->first = i * t->slots;
		t->random.state = i + 1;
		if (pthread_create(&t->thread, NULL, crew_member, t))
			outcome_fail(outcome, "no thread: %s", strerror(errno));
	}
}

static void check_crew(const struct hammer *h, struct outcome *outcome)
{
	static struct records all;
	uint64_t scheduled = 0, cancelled = 0;
	for (unsigned i = 0; i < h->threads; i++) {
		scheduled += h->crew[i].scheduled;
		cancelled += h->crew[i].cancelled;
		if (h->crew[i].error)
			outcome_violation(outcome, "schedule refused: %s", strerror(-h->crew[i].error));
	}
	check_books(h->subject, h->self, scheduled, cancelled, outcome);
	recorded(&all);
	check_records(&all, outcome);
}

void hammer_run(struct hammer *h, uint32_t slots, struct outcome *outcome)
{
	start_crew(h, slots, outcome);
	uint64_t retries = 0;
	for (unsigned i = 0; i < h->threads; i++) {
		pthread_join(h->crew[i].thread, NULL);
		h->done += h->crew[i].ops;
		retries += h->crew[i].retries;
	}
	outcome->ops = h->ops;
	outcome_set(outcome, "ns_per_op", (double)h->wall_ns * h->threads / (double)h->done);
	outcome_set(outcome, "cpu_ns_per_op", (double)h->cpu_ns / (double)h->done);
	outcome_set(outcome, "ops", (double)h->done);
	outcome_set(outcome, "retries", (double)retries);
	check_crew(h, outcome);
	pthread_barrier_destroy(&h->barrier);
	free(h->crew);
}
