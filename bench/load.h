/*
 * Flat-out load on a candidate by several threads, each on its own partition of the slots: fill,
 * warm up, then either a fixed number of operations or a fixed time; wall and CPU time of that
 * part. At the end the ledger must balance: every timer that was scheduled was cancelled, or has
 * fired and not early, or is pending.
 */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include <errno.h>
#include <pthread.h>
#include <stdint.h>

#include "bench/measure.h"
#include "bench/outcome.h"
#include "bench/random.h"
#include "bench/recorder.h"
#include "bench/candidate.h"

/* Operations for each turn of a thread's loop, in which the clock is read once for all of them. */
enum { OPS_PER_TURN = 64 };

struct load;

struct load_thread {
	_Alignas(64) struct load *load;
	void *self; /* the candidate and its calls, copied here to be near */
	int (*schedule)(void *self, unsigned thread, uint32_t slot, uint64_t delay_ns,
			expiry_fn *fn, void *arg);
	bool (*cancel)(void *self, uint32_t slot);
	bool (*touch)(void *self, unsigned thread, uint32_t slot, uint64_t delay_ns);
	unsigned index;
	uint32_t first, slots; /* its partition */
	uint32_t oldest;
	struct random random;
	uint64_t loop_ns;
	uint64_t scheduled, cancelled;
	uint64_t retries; /* schedules that were answered with -EAGAIN */
	uint64_t ops, started_ns;
	int error;
	pthread_t thread;
};

struct load {
	const struct candidate *candidate;
	void *self;
	unsigned threads;
	/*
	 * At least so long, and until each timer has been replaced once on average: what a service
	 * puts off, such as clearing away the cancelled, then is part of what is measured. At most
	 * so long.
	 */
	uint64_t warm_up_ns, warm_up_most_ns;
	/* to do per thread; 0: as many as fit target_ns by the speed of the warm-up */
	uint64_t ops;
	uint64_t target_ns;
	uint64_t least_ops;   /* rather go on for up to three times longer than stop below */
	uint64_t duration_ns; /* not 0: go on for so long instead */

	void (*fill)(struct load_thread *thread);
	void (*work)(struct load_thread *thread, uint64_t ops);

	/* Found out. */
	uint64_t wall_ns, cpu_ns, done;

	pthread_barrier_t barrier;
	struct load_thread *per_thread;
};

/* Runs it, sets ns_per_op, cpu_ns_per_op, ops and retries, and checks the ledger. */
void load_run(struct load *load, uint32_t slots, struct outcome *outcome);

/* Must come before every OPS_PER_TURN operations. */
static inline void load_turn(struct load_thread *t)
{
	const struct candidate *candidate = t->load->candidate;
	t->loop_ns = now_ns();
	if (candidate->turn)
		candidate->turn(t->load->self, t->index, t->loop_ns);
}

/* The slow way, after a first answer that was not 0. */
void load_schedule_again(struct load_thread *t, uint32_t slot, uint64_t delay_ns, int answer);

/*
 * The lower bound of the deadline goes along as arg, so that early runs are found without touching
 * memory.
 */
static inline void *load_arg(const struct load_thread *t, uint64_t delay_ns)
{
	return (void *)(uintptr_t)(t->loop_ns + delay_ns);
}

static inline void load_schedule(struct load_thread *t, uint32_t slot, uint64_t delay_ns)
{
	int answer =
	    t->schedule(t->self, t->index, slot, delay_ns, record_deadline, load_arg(t, delay_ns));
	t->scheduled++;
	if (__builtin_expect(answer != 0, 0))
		load_schedule_again(t, slot, delay_ns, answer);
}

/* The whole partition, uniformly between the two delays. */
static inline void load_fill(struct load_thread *t, uint64_t from_ns, uint64_t to_ns)
{
	for (uint32_t i = 0; i < t->slots; i++) {
		if (i % OPS_PER_TURN == 0)
			load_turn(t);
		load_schedule(t, t->first + i,
			      random_between(random_next(&t->random), from_ns, to_ns));
	}
}

/* A timer that has fired meanwhile is simply gone, for every candidate alike. */
static inline void load_cancel(struct load_thread *t, uint32_t slot)
{
	t->cancelled += t->cancel(t->self, slot);
}

#endif
