/* The semaphore inside; see semaphore.c. */
#ifndef TW_EXECUTOR_SEMAPHORE_PARTS_H
#define TW_EXECUTOR_SEMAPHORE_PARTS_H

#include "executor/base/object.h"
#include "executor/base/handles.h"
#include "tickwheel/semaphore.h"

#define COUNT_MASK UINT64_C(0x7fffffff)
#define CAPACITY_SHIFT 31
#define WAITERS (UINT64_C(1) << 63)

enum state { IDLE, WAITING, HANDED, CANCELLED, RUNNING };

/* In line: a thread's on its stack, a function's in its node. */
struct waiter {
	struct waiter *next, *previous; /* all under the lock */
	uint64_t sequence;
	uint32_t n; /* permits that it waits for */
	bool queued;
	bool is_function;
	_Atomic uint32_t granted; /* a thread's: SEM2 */
};

struct function {
	struct tw__node node;
	struct waiter waiter;
	struct tw__work work;
	tw_semaphore *semaphore;
	tw_fn *fn;
	void *arg;
	void *context;
	enum state state; /* under the lock */
};

struct line {
	struct waiter *first, *last;
};

struct tw_semaphore {
	_Atomic uint64_t word;
	struct tw__base base;
	_Alignas(TW__CACHE_LINE) pthread_mutex_t lock;
	struct line threads, functions; /* what follows is under the lock */
	uint64_t sequence;              /* of the next who joins */
	uint64_t waiting, waiting_threads;
	uint64_t out; /* functions whose work is with the executor */
	uint64_t refused;
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

/* Whether n permits are there to be had. */
static inline bool has_room(uint64_t word, uint32_t n)
{
	return held_of(word) + n <= capacity_of(word);
}

#endif
