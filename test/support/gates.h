/* Callbacks on the real clock that count their runs, and a gate at which one of them waits. */
#ifndef TEST_SUPPORT_GATES_H
#define TEST_SUPPORT_GATES_H

#include "shot.h"

static sem_t entered, go_on; /* one pair for each file that includes this */

static inline void open_gates(void)
{
	sem_init(&entered, 0, 0);
	sem_init(&go_on, 0, 0);
}

static inline void stand_still(void *arg)
{
	atomic_fetch_add((atomic_int *)arg, 1);
	sem_post(&entered);
	await(&go_on, 1);
}

static inline void count(void *arg)
{
	atomic_fetch_add((atomic_int *)arg, 1);
}

#endif
