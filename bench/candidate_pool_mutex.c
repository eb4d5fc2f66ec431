/*
 * The classic pool: a ring of tasks behind a mutex, workers that sleep on a condition variable, one
 * signal for each task.
 */
#include <pthread.h>
#include <stdlib.h>

#include "bench/threads.h"
#include "bench/candidate.h"

enum { QUEUE = 65536 };

struct task {
	expiry_fn *fn;
	void *arg;
};

struct pool {
	pthread_mutex_t lock;
	pthread_cond_t filled;
	struct task *tasks;
	uint64_t head, tail;
	bool stopping;
	struct thread_set threads;
};

static bool take(struct pool *self, struct task *task)
{
	pthread_mutex_lock(&self->lock);
	while (self->head == self->tail && !self->stopping)
		pthread_cond_wait(&self->filled, &self->lock);
	bool got = self->head != self->tail;
	if (got)
		*task = self->tasks[self->head++ % QUEUE];
	pthread_mutex_unlock(&self->lock);
	return got;
}

static void *work(void *me)
{
	struct task task;
	while (take(me, &task))
		task.fn(task.arg);
	return NULL;
}

static void destroy(void *me)
{
	struct pool *self = me;
	pthread_mutex_lock(&self->lock);
	self->stopping = true;
	pthread_cond_broadcast(&self->filled);
	pthread_mutex_unlock(&self->lock);
	threads_join(&self->threads);
	free(self->tasks);
	free(self);
}

static void *create(const struct candidate_setup *setup)
{
	struct pool *self = touched_array(1, sizeof *self);
	if (!self)
		return NULL;
	pthread_mutex_init(&self->lock, NULL);
	pthread_cond_init(&self->filled, NULL);
	self->tasks = touched_array(QUEUE, sizeof *self->tasks);
	if (!self->tasks || !threads_start(&self->threads, setup->threads, work, self)) {
		destroy(self);
		return NULL;
	}
	return self;
}

static int post(void *me, expiry_fn *fn, void *arg)
{
	struct pool *self = me;
	pthread_mutex_lock(&self->lock);
	bool room = self->tail - self->head < QUEUE;
	if (room)
		self->tasks[self->tail++ % QUEUE] = (struct task){fn, arg};
	pthread_mutex_unlock(&self->lock);
	if (room)
		pthread_cond_signal(&self->filled);
	return room ? 0 : -1;
}

const struct candidate candidate_pool_mutex = {
    .name = "pool-mutex",
    .what = "a queue behind a mutex, workers on a condition variable",
    .workloads = ON_POOL | ON_LAYERS,
    .create = create,
    .destroy = destroy,
    .post = post,
};
