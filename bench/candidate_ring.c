/*
 * The floor of W11 and W12: a bare ring with one producer, and workers that poll it without ever
 * sleeping (they yield when it stays empty). Left out, and paid for by all others: workers that
 * sleep and are woken, more than one producer, a place to wait when it is full, a close, counters.
 * It also keeps a processor busy while there is nothing to do. What a hand-over between threads
 * costs at least.
 */
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "bench/threads.h"
#include "bench/candidate.h"

enum { RING = 65536, PATIENCE = 200 };

struct task {
	expiry_fn *fn;
	void *arg;
};

struct ring {
	alignas(64) atomic_uint head; /* the next to take: by the workers */
	alignas(64) atomic_uint tail; /* the next to fill: by the producer */
	unsigned head_seen;           /* the producer's last reading */
	alignas(64) struct task *tasks;
	struct thread_set threads;
	atomic_bool stopping;
};

/* A worker whose task another one takes meanwhile loses the exchange, and drops its copy. */
static bool take(struct ring *self, struct task *task)
{
	unsigned head = atomic_load_explicit(&self->head, memory_order_acquire);
	do {
		if (head == atomic_load_explicit(&self->tail, memory_order_acquire))
			return false;
		*task = self->tasks[head % RING];
	} while (!atomic_compare_exchange_weak_explicit(
	    &self->head, &head, head + 1, memory_order_acq_rel, memory_order_acquire));
	return true;
}

static void *work(void *me)
{
	struct ring *self = me;
	struct task task;
	unsigned empty = 0;
	while (!atomic_load_explicit(&self->stopping, memory_order_relaxed)) {
		if (take(self, &task)) {
			task.fn(task.arg);
			empty = 0;
		} else if (++empty > PATIENCE) {
			sched_yield();
		}
	}
	return NULL;
}

static void destroy(void *me)
{
	struct ring *self = me;
	atomic_store(&self->stopping, true);
	threads_join(&self->threads);
	free(self->tasks);
	free(self);
}

static void *create(const struct candidate_setup *setup)
{
	struct ring *self = touched_array(1, sizeof *self);
	if (!self)
		return NULL;
	self->tasks = touched_array(RING, sizeof *self->tasks);
	if (!self->tasks || !threads_start(&self->threads, setup->threads, work, self)) {
		destroy(self);
		return NULL;
	}
	return self;
}

static int post(void *me, expiry_fn *fn, void *arg)
{
	struct ring *self = me;
	unsigned tail = atomic_load_explicit(&self->tail, memory_order_relaxed);
	if (tail - self->head_seen == RING)
		self->head_seen = atomic_load_explicit(&self->head, memory_order_acquire);
	if (tail - self->head_seen == RING)
		return -1;
	self->tasks[tail % RING] = (struct task){fn, arg};
	atomic_store_explicit(&self->tail, tail + 1, memory_order_release);
	return 0;
}

const struct candidate candidate_ring = {
    .name = "ring",
    .what = "a bare ring, its workers poll",
    .workloads = ON_POOL | ON_LAYERS,
    .create = create,
    .destroy = destroy,
    .post = post,
};
