/*
 * stress_semaphore SECONDS [SEED]: threads and functions share permits while the capacity changes.
 *
 * Threads try to take permits with and without a timeout. Functions wait for permits, and some are
 * cancelled while they wait or while they are handed over. In rounds without a change of the
 * capacity the number of holders never exceeds it; in all rounds the ledger balances at the end:
 * each permit that was taken was given back, each function ran or was cancelled, and exactly the
 * capacity is available again.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "test/support/random.h"
#include "tickwheel.h"

enum { THREADS = 3, STEPS = 400, FUNCTIONS = 8 };

static tw_service *service;
static tw_semaphore *permits;
static atomic_long holders, ran, started, cancelled;
static atomic_bool resizing;
static long bound;
static uint64_t first_seed;
static unsigned long rounds;

static _Noreturn void violation(const char *what, long long value)
{
	fflush(stdout);
	fprintf(stderr, "VIOLATION (seed %" PRIu64 ", round %lu): %s: %lld\n", first_seed, rounds,
		what, value);
	_exit(1);
}

static void wanted(const char *what, long long is, long long should)
{
	if (is != should)
		violation(what, is);
}

static void hold_one(void)
{
	long now = atomic_fetch_add(&holders, 1) + 1;
	if (!atomic_load(&resizing) && now > bound)
		violation("more holders than permits", now);
	for (volatile int i = 0; i < 50; i++) {
	}
	atomic_fetch_sub(&holders, 1);
	wanted("release", tw_semaphore_release(permits, 1), 0);
}

static void run_function(void *arg)
{
	(void)arg;
	hold_one();
	atomic_fetch_add(&ran, 1);
}

static void use_functions(uint64_t *seed)
{
	tw_waiter waiters[FUNCTIONS];
	for (int i = 0; i < FUNCTIONS; i++) {
		wanted("acquire_async",
		       tw_semaphore_acquire_async(permits, 1, run_function, NULL, &waiters[i]), 0);
		atomic_fetch_add(&started, 1);
	}
	for (int i = 0; i < FUNCTIONS; i++)
		if (random_percent(seed, 50) &&
		    tw_semaphore_cancel(permits, waiters[i]) == TW_CANCELLED)
			atomic_fetch_add(&cancelled, 1);
}

static void use_once(uint64_t *seed)
{
	static const uint64_t timeouts_ns[] = {0, 1000, 50000, TW_FOREVER};
	int r = tw_semaphore_acquire(permits, 1, timeouts_ns[random_below(seed, 4)]);
	if (r == 0)
		hold_one();
	else if (r != -EAGAIN && r != -ETIMEDOUT)
		violation("acquire", r);
}

static void *work(void *arg)
{
	uint64_t seed = *(uint64_t *)arg;
	for (int i = 0; i < STEPS; i++) {
		uint64_t what = random_below(&seed, 10);
		if (what == 0)
			use_functions(&seed);
		else if (what == 1 && atomic_load(&resizing))
			wanted(
			    "set_capacity",
			    tw_semaphore_set_capacity(permits, 1 + (int32_t)random_below(&seed, 6)),
			    0);
		else
			use_once(&seed);
	}
	return NULL;
}

static void await_functions(void)
{
	uint64_t end_ns = tw_clock_now(tw_clock_monotonic()) + 20 * TW_SECOND;
	struct tw_semaphore_stats stats = {.size = sizeof stats};
	do {
		if (tw_clock_now(tw_clock_monotonic()) > end_ns)
			violation("functions wait for ever", (long long)stats.waiters);
		usleep(50);
		wanted("stats", tw_semaphore_stats(permits, &stats), 0);
		wanted("books", (long long)(stats.capacity + stats.debt),
		       (long long)(stats.available + stats.held));
	} while (stats.waiters || stats.handed);
	wanted("held at the end", (long long)stats.held, 0);
	wanted("available at the end", (long long)stats.available, (long long)stats.capacity);
	wanted("over-releases", (long long)stats.over_releases, 0);
	wanted("functions that ran or were cancelled", atomic_load(&ran) + atomic_load(&cancelled),
	       atomic_load(&started));
	wanted("release of nothing", tw_semaphore_release(permits, 1), -EOVERFLOW);
}

static void round_of(uint64_t *seed)
{
	pthread_t threads[THREADS];
	uint64_t seeds[THREADS];
	bound = 1 + (long)random_below(seed, 4);
	atomic_store(&resizing, random_percent(seed, 50));
	wanted("create", tw_semaphore_create(&permits, service, NULL, (int32_t)bound), 0);
	for (int i = 0; i < THREADS; i++) {
		seeds[i] = random_next(seed);
		pthread_create(&threads[i], NULL, work, &seeds[i]);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	await_functions();
	wanted("destroy", tw_semaphore_destroy(permits), 0);
	rounds++;
}

int main(int argc, char **argv)
{
	if (argc < 2 || argc > 3 || atof(argv[1]) <= 0) {
		fprintf(stderr, "usage: stress_semaphore SECONDS [SEED]\n");
		return 2;
	}
	tw_clock *clock = tw_clock_monotonic();
	uint64_t start_ns = tw_clock_now(clock), span_ns = (uint64_t)(atof(argv[1]) * 1e9);
	first_seed = argc == 3 ? strtoull(argv[2], NULL, 0) : start_ns;
	printf("stress_semaphore: seed %" PRIu64 "\n", first_seed);
	uint64_t seed = first_seed;
	struct tw_service_config cfg = {.size = sizeof cfg, .workers = 2};
	wanted("service", tw_service_create(&service, &cfg), 0);
	while (tw_clock_now(clock) - start_ns < span_ns)
		round_of(&seed);
	wanted("service destroy", tw_service_destroy(service), 0);
	printf("ok: %lu rounds, %ld functions, %ld of them cancelled\n", rounds,
	       atomic_load(&started), atomic_load(&cancelled));
	return 0;
}
