/*
 * A program's own executor, for stress: a few threads and a queue; it refuses and gives back at
 * random.
 */
#ifndef TEST_STRESS_FOREIGN_H
#define TEST_STRESS_FOREIGN_H

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "test/support/random.h"
#include "tickwheel/layers.h"

enum { FOREIGN_THREADS_MOST = 4 };

struct foreign {
	tw_executor base;
	pthread_mutex_t lock;
	pthread_cond_t more;
	tw_batch **tickets; /* a ring of `room`, a power of two */
	size_t head, tail, room;
	bool stop;
	unsigned refuse_percent, give_back_percent;
	uint64_t seed;
	unsigned threads;
	pthread_t thread[FOREIGN_THREADS_MOST];
};

/* Whose thread this is, if it is one of a foreign's. */
static _Thread_local tw_executor *foreign_here;

static void foreign_grow(struct foreign *foreign)
{
	size_t room = foreign->room * 2;
	tw_batch **tickets = malloc(room * sizeof(*tickets));
	if (!tickets)
		abort();
	for (size_t i = foreign->head; i != foreign->tail; i++)
		tickets[i & (room - 1)] = foreign->tickets[i & (foreign->room - 1)];
	free(foreign->tickets);
	foreign->tickets = tickets;
	foreign->room = room;
}

static int foreign_submit(tw_executor *self, tw_batch *batch, size_t n)
{
	struct foreign *foreign = (struct foreign *)self;
	int answer = -EAGAIN;
	pthread_mutex_lock(&foreign->lock);
	if (!random_percent(&foreign->seed, foreign->refuse_percent)) {
		while (foreign->tail - foreign->head + n > foreign->room)
			foreign_grow(foreign);
		for (size_t i = 0; i < n; i++)
			foreign->tickets[foreign->tail++ & (foreign->room - 1)] = batch;
		pthread_cond_broadcast(&foreign->more);
		answer = 0;
	}
	pthread_mutex_unlock(&foreign->lock);
	return answer;
}

/* NULL: asked to stop, and nothing is left. */
static tw_batch *foreign_take(struct foreign *foreign, bool *give_back)
{
	tw_batch *batch = NULL;
	pthread_mutex_lock(&foreign->lock);
	while (foreign->head == foreign->tail && !foreign->stop)
		pthread_cond_wait(&foreign->more, &foreign->lock);
	if (foreign->head != foreign->tail)
		batch = foreign->tickets[foreign->head++ & (foreign->room - 1)];
	*give_back = random_percent(&foreign->seed, foreign->give_back_percent);
	pthread_mutex_unlock(&foreign->lock);
	return batch;
}

static void *foreign_work(void *arg)
{
	bool give_back;
	tw_batch *batch;
	foreign_here = &((struct foreign *)arg)->base;
	while ((batch = foreign_take(arg, &give_back)) != NULL)
		if (give_back || tw_run_one(batch) < 0)
			tw_run_return(batch);
	return NULL;
}

static void foreign_start(struct foreign *foreign, uint64_t seed, unsigned threads)
{
	static const struct tw_executor_ops ops = {.size = sizeof(ops), .submit = foreign_submit};
	*foreign = (struct foreign){
	    .base = {.ops = &ops},
	    .lock = PTHREAD_MUTEX_INITIALIZER,
	    .more = PTHREAD_COND_INITIALIZER,
	    .tickets = malloc(64 * sizeof(tw_batch *)),
	    .room = 64,
	    .seed = seed,
	    .threads = threads,
	};
	if (!foreign->tickets)
		abort();
	for (unsigned i = 0; i < threads; i++)
		if (pthread_create(&foreign->thread[i], NULL, foreign_work, foreign) != 0)
			abort();
}

static void foreign_stop(struct foreign *foreign)
{
	pthread_mutex_lock(&foreign->lock);
	foreign->stop = true;
	pthread_cond_broadcast(&foreign->more);
	pthread_mutex_unlock(&foreign->lock);
	for (unsigned i = 0; i < foreign->threads; i++)
		pthread_join(foreign->thread[i], NULL);
	free(foreign->tickets);
}

#endif
