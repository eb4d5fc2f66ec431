/* Threads of the rival pools: started, told to stop by their own queue, joined. */
#ifndef BENCH_THREADS_H
#define BENCH_THREADS_H

#include <pthread.h>
#include <stdbool.h>

enum { MOST_WORKERS = 256 };

struct thread_set {
	unsigned count;
	pthread_t threads[MOST_WORKERS];
};

/* False: not all could be made; those that were are counted. */
static inline bool threads_start(struct thread_set *set, unsigned count, void *(*work)(void *),
				 void *arg)
{
	for (set->count = 0; set->count < count && set->count < MOST_WORKERS; set->count++)
		if (pthread_create(&set->threads[set->count], NULL, work, arg))
			return false;
	return set->count == count;
}

static inline void threads_join(struct thread_set *set)
{
	while (set->count > 0)
		pthread_join(set->threads[--set->count], NULL);
}

#endif
