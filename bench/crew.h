/* Threads of the rival pools: started, told to stop by their own queue, joined. */
#ifndef BENCH_CREW_H
#define BENCH_CREW_H

#include <pthread.h>
#include <stdbool.h>

enum { MOST_WORKERS = 256 };

struct crew {
	unsigned count;
	pthread_t threads[MOST_WORKERS];
};

/* False: not all could be made; those that were are counted. */
static inline bool crew_start(struct crew *crew, unsigned count, void *(*work)(void *), void *arg)
{
	for (crew->count = 0; crew->count < count && crew->count < MOST_WORKERS; crew->count++)
		if (pthread_create(&crew->threads[crew->count], NULL, work, arg))
			return false;
	return crew->count == count;
}

static inline void crew_join(struct crew *crew)
{
	while (crew->count > 0)
		pthread_join(crew->threads[--crew->count], NULL);
}

#endif
