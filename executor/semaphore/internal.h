/* The inside of a semaphore: semaphore.c (calls) and permits.c (the line, who gets permits). */
#ifndef TW_EXECUTOR_SEMAPHORE_PARTS_H
#define TW_EXECUTOR_SEMAPHORE_PARTS_H

#include "executor/base/waiter.h"
#include "tickwheel/semaphore.h"

#define COUNT_MASK UINT64_C(0x7fffffff)
#define CAPACITY_SHIFT 31
#define WAITERS (UINT64_C(1) << 63)

struct function {
	struct tw__node node; /* state: enum tw__item_state */
	struct tw__waiter waiter;
	struct tw__work work;
	tw_fn *fn;
	void *arg, *context;
	uint64_t order; /* in which functions got permits: the line's */
};

struct tw_semaphore {
	_Atomic uint64_t word;
	struct tw__object object; /* its work tries again what the executor has refused */
	/* What follows is under the object's lock. */
	struct tw__line line, refused;
	uint64_t waiting, waiting_threads; /* in line */
	uint64_t out;                      /* functions that have permits, and are not over */
	uint64_t refusals, order;
	_Atomic uint64_t over_releases;
	struct tw__nodes nodes;
};

static inline uint64_t held_of(uint64_t word)
{
	return word & COUNT_MASK;
}

static inline uint64_t capacity_of(uint64_t word)
{
	return word >> CAPACITY_SHIFT & COUNT_MASK;
}

static inline bool has_room(uint64_t word, uint32_t n)
{
	return held_of(word) + n <= capacity_of(word);
}

static inline struct function *function_of(struct tw__waiter *waiter)
{
	return TW__OWNER(struct function, waiter, waiter);
}

#endif
