/*
 * What suites of tests on one semaphore begin with: its executor is a queue that the test empties,
 * and functions that wait write down the order of their turns.
 */
#ifndef TEST_SUPPORT_SEMAPHORE_SUITE_H
#define TEST_SUPPORT_SEMAPHORE_SUITE_H

#include "queue_executor.h"
#include "rig.h"

static struct rig rig;
static struct queue_executor queue;
static tw_semaphore *permits;

static inline void open_with(int32_t capacity)
{
	rig_open(&rig, NULL);
	queue_executor_open(&queue);
	expect_eq(tw_semaphore_create(&permits, rig.service, &queue.base, capacity), 0);
}

static inline void close_all(void)
{
	expect_eq(tw_semaphore_destroy(permits), 0);
	permits = NULL;
	queue_executor_close(&queue);
	rig_close(&rig);
}

/* A suite's .fini: closes what a test has left open. */
static inline void close_left(void)
{
	expect_in_fini();
	if (permits)
		close_all();
}

static inline struct tw_semaphore_stats gauges(void)
{
	struct tw_semaphore_stats stats = {.size = sizeof(stats)};
	expect_eq(tw_semaphore_stats(permits, &stats), 0);
	expect_eq(stats.capacity + stats.debt, stats.available + stats.held);
	return stats;
}

static inline void acquire(unsigned n)
{
	while (n--)
		expect_eq(tw_semaphore_acquire(permits, 1, 0), 0);
}

static inline void release(unsigned n)
{
	while (n--)
		expect_eq(tw_semaphore_release(permits, 1), 0);
}

/* Functions that wait: the order in which they were called. */
static int order[64];
static unsigned called;
static int numbers[64] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
			  16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};

static inline void note(void *arg)
{
	order[called++] = *(int *)arg;
}

static inline tw_waiter wait_as(int number)
{
	tw_waiter waiter = {7};
	expect_eq(tw_semaphore_acquire_async(permits, 1, note, &numbers[number], &waiter), 0);
	expect_ne(waiter.id, 0);
	return waiter;
}

#endif
