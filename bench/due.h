/*
 * How a loop's thread runs callbacks outside the lock that guards the loop: the
 * thread copies the timers that are due into a small batch under the lock, releases the lock, and
 * runs the batch.
 */
#ifndef BENCH_DUE_H
#define BENCH_DUE_H

#include <pthread.h>

#include "bench/candidate.h"

enum { DUE_BATCH = 64 };

struct due_batch {
	pthread_mutex_t *lock; /* held by the caller of both functions, who is the loop's thread */
	unsigned count;
	struct due {
		expiry_fn *fn;
		void *arg;
	} items[DUE_BATCH];
};

static inline void due_run(struct due_batch *batch)
{
	if (batch->count == 0)
		return;
	pthread_mutex_unlock(batch->lock);
	for (unsigned i = 0; i < batch->count; i++)
		batch->items[i].fn(batch->items[i].arg);
	batch->count = 0;
	pthread_mutex_lock(batch->lock);
}

static inline void due_add(struct due_batch *batch, expiry_fn *fn, void *arg)
{
	batch->items[batch->count++] = (struct due){fn, arg};
	if (batch->count == DUE_BATCH)
		due_run(batch);
}

#endif
