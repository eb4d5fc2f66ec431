/*
 * The floor of W11 and W12: a ring of Concurrency Kit's with one producer, and workers that poll it
 * without ever sleeping (they yield when it stays empty). Left out, and paid for by all others:
 * workers that sleep and are woken, more than one producer, a place to wait when it is full, a
 * close, counters. It also keeps a processor busy while there is nothing to do. What a hand-over
 * between threads costs at least.
 */
#include <ck_ring.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "bench/threads.h"
#include "bench/candidate.h"

enum { RING = 65536, PATIENCE = 200 };

struct task {
	expiry_fn *fn;
	void *arg;
};

CK_RING_PROTOTYPE(task, task)

struct ring {
	ck_ring_t ring;
	struct task *tasks;
	struct thread_set threads;
	atomic_bool stopping;
};

static void *work(void *me)
{
	struct ring *self = me;
	struct task task;
	unsigned empty = 0;
	while (!atomic_load_explicit(&self->stopping, memory_order_relaxed)) {
		if (CK_RING_DEQUEUE_SPMC(task, &self->ring, self->tasks, &task)) {
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
	ck_ring_init(&self->ring, RING);
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
	struct task task = {fn, arg};
	return CK_RING_ENQUEUE_SPMC(task, &self->ring, self->tasks, &task) ? 0 : -1;
}

const struct candidate candidate_ring = {
    .name = "ring",
    .what = "a bare ring of Concurrency Kit's, its workers poll",
    .workloads = ON_POOL | ON_LAYERS,
    .create = create,
    .destroy = destroy,
    .post = post,
};
