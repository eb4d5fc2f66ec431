/* What the tests of the guide's recipes share. */
#ifndef TEST_RECIPES_SUPPORT_H
#define TEST_RECIPES_SUPPORT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tickwheel.h"

#define CHECK(condition)                                                                 \
	do {                                                                             \
		if (!(condition)) {                                                      \
			fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, \
				#condition);                                             \
			abort();                                                         \
		}                                                                        \
	} while (0)

/* Four workers, the finest tick. */
static inline tw_service *service_of_four(void)
{
	tw_service *service;
	struct tw_service_config config = {.size = sizeof config, .workers = 4, .tick_ns = 50000};
	CHECK(tw_service_create(&service, &config) == 0);
	return service;
}

static tw_clock *hand; /* of service_by_hand */

/* The same on a clock that the test moves. */
static inline tw_service *service_by_hand(void)
{
	tw_service *service;
	CHECK(tw_clock_manual_create(&hand, 1000 * TW_SECOND) == 0);
	struct tw_service_config config = {.size = sizeof config, .workers = 4, .clock = hand};
	CHECK(tw_service_create(&service, &config) == 0);
	return service;
}

/* For main to return. */
static inline int end_of(tw_service *service)
{
	CHECK(tw_service_destroy(service) == 0);
	return hand ? tw_clock_manual_destroy(hand) : 0;
}

static inline void advance(uint64_t ns)
{
	CHECK(tw_clock_manual_advance_by(hand, ns) == 0);
}

static inline void *zeroed(size_t bytes)
{
	void *memory = calloc(1, bytes);
	CHECK(memory);
	return memory;
}

/*
 * Sleeps for a moment that differs from call to call: so that two threads meet in different ways.
 */
static inline void jitter(unsigned *seed, unsigned most_us)
{
	*seed = *seed * 1103515245u + 12345u;
	usleep((*seed >> 8) % most_us);
}

/* Moves the clock on a thread of its own, after a moment, beside what the test does. */
static struct mover {
	pthread_t thread;
	unsigned seed;
	int steps;
	uint64_t step_ns;
} mover;

static inline void *mover_main(void *arg)
{
	(void)arg;
	jitter(&mover.seed, 200);
	for (int i = 0; i < mover.steps; i++)
		advance(mover.step_ns);
	return NULL;
}

static inline void mover_start(int steps, uint64_t step_ns)
{
	mover.steps = steps;
	mover.step_ns = step_ns;
	CHECK(pthread_create(&mover.thread, NULL, mover_main, NULL) == 0);
}

static inline void mover_join(void)
{
	CHECK(pthread_join(mover.thread, NULL) == 0);
}

static inline void await_at_least(atomic_int *n, int wanted)
{
	while (*n < wanted)
		usleep(100);
}

/* Whether this run goes the wrong way, and whether that has freed what a callback still uses. */
static bool wrong;
static atomic_bool freed_early;

static inline void read_way(int argc, char **argv)
{
	wrong = argc > 1 && strcmp(argv[1], "wrong") == 0;
}

/*
 * Makes a callback slow: the wrong way frees what the callback uses meanwhile, however long that
 * takes; the right way waits for the callback.
 */
static atomic_int entered;

static inline void outlast_the_free(void)
{
	entered = 1;
	if (!wrong)
		usleep(50000);
	while (wrong && !freed_early)
		usleep(100);
}

#endif
