/*
 * Rounds, for stress programs in which a service is closed under its producers, again and again.
 *
 * Producers, a thread each, schedule on the present service until it refuses, or their room is used
 * up. The main thread makes a service, announces the round, closes, and checks each timer. The
 * release of an accepted timer was called once; that of a refused timer was not called.
 *
 * The program says how many producers there are, and how a producer schedules. Before the include
 * it defines ROUNDS_PRODUCERS and ROUNDS_MOST.
 */
#ifndef TEST_SUPPORT_CLOSING_ROUNDS_H
#define TEST_SUPPORT_CLOSING_ROUNDS_H

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "random.h"
#include "tickwheel.h"

enum { PRODUCERS = ROUNDS_PRODUCERS, MOST = ROUNDS_MOST };

struct producer {
	uint64_t seed;
	atomic_uint releases[MOST];
	unsigned accepted; /* the first n; the rest was refused, or not tried */
	atomic_ulong round_done;
	pthread_t thread;
};

static struct producer producers[PRODUCERS];
static _Atomic(tw_service *) service;
static atomic_ulong round_number; /* 0: not begun; ULONG_MAX: stop */
static atomic_bool closing;
static uint64_t first_seed;

static inline _Noreturn void violation(const char *what, long long answer)
{
	fflush(stdout);
	fprintf(stderr, "VIOLATION (seed %" PRIu64 ", round %lu): %s: %lld\n", first_seed,
		atomic_load(&round_number), what, answer);
	_exit(1);
}

/* The program's. */
static void schedule_until_refused(struct producer *p, tw_service *s);

/* A service is there: the producers begin. */
static inline void begin_round(unsigned long number, tw_service *s)
{
	atomic_store(&service, s);
	atomic_store(&round_number, number);
}

/* Sleeps until a round after `done` has begun. Its number, or ULONG_MAX: there will be no more. */
static inline unsigned long await_round(unsigned long done)
{
	unsigned long now;
	while ((now = atomic_load(&round_number)) == done)
		sched_yield();
	return now;
}

static inline void await_done(const atomic_ulong *round_done, unsigned long number)
{
	while (atomic_load(round_done) != number)
		sched_yield();
}

static inline void *produce(void *arg)
{
	struct producer *p = arg;
	for (unsigned long now = 0; (now = await_round(now)) != (unsigned long)-1;
	     atomic_store(&p->round_done, now))
		schedule_until_refused(p, atomic_load(&service));
	return NULL;
}

/* Beyond what was accepted `beyond` may have been tried. */
static inline uint64_t check_producer(struct producer *p, unsigned beyond)
{
	for (unsigned i = 0; i < MOST && i <= p->accepted + beyond; i++) {
		unsigned releases = atomic_exchange(&p->releases[i], 0);
		if (releases != (i < p->accepted))
			violation(i < p->accepted ? "releases of an accepted timer"
						  : "releases of a refused timer",
				  releases);
	}
	return p->accepted;
}

/* Waits for the producers of this round; how many timers they had accepted. */
static inline uint64_t end_round(unsigned long number, unsigned beyond)
{
	uint64_t accepted = 0;
	for (int i = 0; i < PRODUCERS; i++) {
		await_done(&producers[i].round_done, number);
		accepted += check_producer(&producers[i], beyond);
	}
	return accepted;
}

/*
 * Arguments SECONDS [SEED]; the seed of all is printed, and the producers begin to wait. The state
 * of the main thread's random numbers.
 */
static inline uint64_t begin_rounds(const char *name, int argc, char **argv)
{
	if (argc < 2 || argc > 3 || atof(argv[1]) <= 0) {
		fprintf(stderr, "usage: %s SECONDS [SEED]\n", name);
		exit(2);
	}
	first_seed = argc == 3 ? strtoull(argv[2], NULL, 0) : tw_clock_now(tw_clock_monotonic());
	printf("%s: seed %" PRIu64 "\n", name, first_seed);
	uint64_t seed = first_seed;
	for (int i = 0; i < PRODUCERS; i++) {
		producers[i].seed = random_next(&seed);
		if (pthread_create(&producers[i].thread, NULL, produce, &producers[i]) != 0)
			violation("no thread", 0);
	}
	return seed;
}

/* Rounds for as many seconds as asked for. How many; *accepted: timers in all. */
static inline unsigned long play_rounds(char **argv, uint64_t *seed,
					uint64_t run_round(unsigned long number, uint64_t *seed),
					uint64_t *accepted)
{
	tw_clock *clock = tw_clock_monotonic();
	uint64_t start_ns = tw_clock_now(clock), span_ns = (uint64_t)(atof(argv[1]) * 1e9),
		 passed_ns = 0, told_ns = 0;
	unsigned long number = 0;
	*accepted = 0;
	for (; passed_ns < span_ns; passed_ns = tw_clock_now(clock) - start_ns) {
		*accepted += run_round(++number, seed);
		if (passed_ns - told_ns >= TW_SECOND) {
			printf("  ... %lu rounds, %" PRIu64 " timers\n", number, *accepted);
			told_ns = passed_ns;
		}
	}
	atomic_store(&round_number, (unsigned long)-1);
	for (int i = 0; i < PRODUCERS; i++)
		pthread_join(producers[i].thread, NULL);
	return number;
}

#endif
