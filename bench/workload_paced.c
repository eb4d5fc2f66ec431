/*
 * W13: requests at a pace, the load of most servers: n requests a second, each with a timeout of
 * 5 s that is cancelled when the answer comes, 1 to 20 ms later. Nearly idle: what counts is CPU
 * time, and of it the background's, which is that of all threads but the caller's. The
 * measured part begins when the first timeouts would have come due.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "bench/baseline.h"
#include "bench/ledger.h"
#include "bench/load.h"
#include "bench/workload.h"

#define TIMEOUT_NS (5 * SECOND_NS)

enum { LONGEST_MS = 20, STEPS = 32 };
#define NO_REQUEST UINT32_MAX

struct paced {
	const struct order *order;
	void *self;
	struct outcome *outcome;
	struct random random;
	uint32_t ends[STEPS], free; /* lists of slots: answered in step i; free */
	uint32_t *next;
	uint64_t scheduled, cancelled, turns;
};

static void paced_arrive(struct paced *paced, uint64_t step, uint64_t loop_ns)
{
	uint32_t slot = paced->free, answered;
	if (slot == NO_REQUEST)
		outcome_fail(paced->outcome, "more requests outstanding than there can be");
	paced->free = paced->next[slot];
	int answer;
	while ((answer = paced->order->candidate->schedule(
		    paced->self, 0, slot, TIMEOUT_NS, record_deadline,
		    (void *)(uintptr_t)(loop_ns + TIMEOUT_NS))) == -EAGAIN)
		sched_yield();
	if (answer != 0)
		outcome_fail(paced->outcome, "schedule refused: %s", strerror(-answer));
	paced->scheduled++;
	answered =
	    (uint32_t)(step + 1 + random_slot(random_next(&paced->random), LONGEST_MS)) % STEPS;
	paced->next[slot] = paced->ends[answered];
	paced->ends[answered] = slot;
}

static void paced_step(struct paced *paced, uint64_t step, uint64_t at_ns)
{
	paced->turns += drive_until(paced->order->candidate, paced->self, at_ns);
	uint64_t loop_ns = now_ns();
	if (paced->order->candidate->turn)
		paced->order->candidate->turn(paced->self, 0, loop_ns);
	uint32_t slot = paced->ends[step % STEPS], next;
	paced->ends[step % STEPS] = NO_REQUEST;
	for (; slot != NO_REQUEST; slot = next) {
		next = paced->next[slot];
		paced->cancelled += paced->order->candidate->cancel(paced->self, slot);
		paced->next[slot] = paced->free;
		paced->free = slot;
	}
	for (uint32_t i = 0; i < paced->order->n / 1000; i++)
		paced_arrive(paced, step, loop_ns);
}

static uint64_t paced_run(struct paced *paced, uint64_t step, uint64_t end)
{
	uint64_t start = now_ns();
	for (uint64_t i = 0; step < end; i++, step++)
		paced_step(paced, step, start + i * MILLISECOND_NS);
	return now_ns() - start;
}

static void run(const struct order *order, struct outcome *outcome)
{
	static struct records all;
	struct candidate_view before, after;
	uint32_t slots = order->n / 1000 * (LONGEST_MS + 1);
	struct paced paced = {.order = order, .outcome = outcome, .random = {.state = 1}};
	paced.self = make_candidate(order, slots, outcome);
	paced.next = touched_array(slots, sizeof *paced.next);
	if (!paced.next || slots == 0)
		outcome_fail(outcome, "no memory for the requests, or none to make");
	for (uint32_t slot = 0; slot < slots; slot++)
		paced.next[slot] = slot + 1 < slots ? slot + 1 : NO_REQUEST;
	for (unsigned i = 0; i < STEPS; i++)
		paced.ends[i] = NO_REQUEST;
	uint64_t warm = order->quick ? 500 : 5500, end = warm + (order->quick ? 500 : 2000);
	paced_run(&paced, 0, warm);
	order->candidate->view(paced.self, &before);
	uint64_t turns = paced.turns, cpu = process_cpu_ns(), own = thread_cpu_ns();
	double seconds = (double)paced_run(&paced, warm, end) / 1e9;
	cpu = process_cpu_ns() - cpu;
	own = thread_cpu_ns() - own;
	order->candidate->view(paced.self, &after);
	turns = order->candidate->bare ? paced.turns - turns : after.wakeups - before.wakeups;
	double requests = (double)(end - warm) * (order->n / 1000);
	outcome_set(outcome, "cpu_ns_per_op", (double)cpu / requests);
	outcome_set(outcome, "background_ns_per_op",
		    cpu > own ? (double)(cpu - own) / requests : 0);
	outcome_set(outcome, "wakeups_per_s", (double)turns / seconds);
	check_ledger(order->candidate, paced.self, paced.scheduled, paced.cancelled, outcome);
	recorded(&all);
	check_records(&all, outcome);
	order->candidate->destroy(paced.self);
}

const struct workload workload_paced = {
    .name = "W13",
    .bit = ON_PACED,
    .run = run,
};
