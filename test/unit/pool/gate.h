/* A gate: jobs block in it until the test lets them go, one by one. */
#ifndef TEST_UNIT_POOL_GATE_H
#define TEST_UNIT_POOL_GATE_H

#include <sched.h>
#include <semaphore.h>

#include "pools.h"

struct gate {
	sem_t permits;
	atomic_int inside, passed;
};

static inline void pass(void *arg)
{
	struct gate *gate = arg;
	atomic_fetch_add(&gate->inside, 1);
	while (sem_wait(&gate->permits) != 0) {
	}
	atomic_fetch_add(&gate->passed, 1);
}

static inline void let_go(struct gate *gate, int n)
{
	while (n-- > 0)
		sem_post(&gate->permits);
}

static inline void await_value(atomic_int *value, int wanted)
{
	while (atomic_load(value) != wanted)
		sched_yield();
}

static inline void block(tw_pool *pool, struct gate *gate, int jobs)
{
	for (int i = 0; i < jobs; i++)
		expect_eq(tw_pool_submit(pool, pass, gate), 0);
}

#endif
