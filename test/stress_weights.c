/*
 * stress_weights SECONDS [SEED]: four threads and their functions share permits, several at a time.
 *
 * Threads try to take lots with and without a timeout, and give them back whole or in parts.
 * Functions wait for lots, and some are cancelled while they wait or while they are handed over. In
 * some rounds the capacity changes. Without such changes the permits in use never exceed the
 * capacity. In all rounds the ledger balances at the end: no permit is lost or doubled.
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

enum { THREADS = 4, STEPS = 5000, MOST = 8 };

static tw_service *service;
static tw_semaphore *permits;
static atomic_long out, ran, started, cancelled, operations;
static bool resizing;
static int32_t capacity;
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

static void give_back(int32_t n, int32_t part)
{
	long now = atomic_fetch_add(&out, n) + n;
	if (!resizing && now > capacity)
		violation("more permits out than there are", now);
	atomic_fetch_sub(&out, n);
	if (part && part < n) {
		wanted("release of a part", tw_semaphore_release(permits, part), 0);
		n -= part;
	}
	wanted("release", tw_semaphore_release(permits, n), 0);
}

static void run_function(void *arg)
{
	atomic_fetch_add(&ran, 1);
	give_back((int32_t)(intptr_t)arg, 0);
}

static void use_function(uint64_t *seed, int32_t n)
{
	tw_waiter waiter;
	int r = tw_semaphore_acquire_async(permits, n, run_function, (void *)(intptr_t)n, &waiter);
	if (r == -EINVAL && resizing && n > 1)
		return;
	wanted("acquire_n_async", r, 0);
	atomic_fetch_add(&started, 1);
	if (random_percent(seed, 50) && tw_semaphore_cancel(permits, waiter) == TW_CANCELLED)
		atomic_fetch_add(&cancelled, 1);
}

/* While the capacity changes, nobody waits without limit: it may stay below n. */
static void use_thread(uint64_t *seed, int32_t n)
{
	static const uint64_t timeouts_ns[] = {0, 0, 1000, 20000, TW_FOREVER};
	int r = tw_semaphore_acquire(permits, n, timeouts_ns[random_below(seed, resizing ? 4 : 5)]);
	if (r == 0)
		give_back(n, (int32_t)random_below(seed, 3));
	else if (r != -EAGAIN && r != -ETIMEDOUT && !(r == -EINVAL && resizing && n > 1))
		violation("acquire_n", r);
}

static void *work(void *arg)
{
	uint64_t seed = *(uint64_t *)arg;
	for (int i = 0; i < STEPS; i++) {
		int32_t n = 1 + (int32_t)random_below(&seed, (uint64_t)capacity);
		if (resizing && random_percent(&seed, 5))
			wanted("set_capacity",
			       tw_semaphore_set_capacity(permits,
							 (int32_t)random_below(&seed, MOST + 1)),
			       0);
		if (random_percent(&seed, 20))
			use_function(&seed, n);
		else
			use_thread(&seed, n);
	}
	atomic_fetch_add(&operations, STEPS);
	return NULL;
}

static void await_functions(void)
{
	uint64_t end_ns = tw_clock_now(tw_clock_monotonic()) + 20 * TW_SECOND;
	struct tw_semaphore_stats stats = {.size = sizeof stats};
	wanted("set_capacity at the end", tw_semaphore_set_capacity(permits, capacity), 0);
	do {
		if (tw_clock_now(tw_clock_monotonic()) > end_ns)
			violation("functions wait for ever", (long long)stats.waiters);
		usleep(50);
		wanted("stats", tw_semaphore_stats(permits, &stats), 0);
		wanted("books", (long long)(stats.capacity + stats.debt),
		       (long long)(stats.available + stats.held));
	} while (stats.waiters || stats.handed);
	wanted("held at the end", (long long)stats.held, 0);
	wanted("available at the end", (long long)stats.available, capacity);
	wanted("over-releases", (long long)stats.over_releases, 0);
	wanted("functions that ran or were cancelled", atomic_load(&ran) + atomic_load(&cancelled),
	       atomic_load(&started));
}

static void round_of(uint64_t *seed)
{
	pthread_t threads[THREADS];
	uint64_t seeds[THREADS];
	capacity = 1 + (int32_t)random_below(seed, MOST);
	resizing = random_percent(seed, 30);
	wanted("create", tw_semaphore_create(&permits, service, NULL, capacity), 0);
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
		fprintf(stderr, "usage: stress_weights SECONDS [SEED]\n");
		return 2;
	}
	tw_clock *clock = tw_clock_monotonic();
	uint64_t start_ns = tw_clock_now(clock), span_ns = (uint64_t)(atof(argv[1]) * 1e9);
	first_seed = argc == 3 ? strtoull(argv[2], NULL, 0) : start_ns;
	printf("stress_weights: seed %" PRIu64 "\n", first_seed);
	uint64_t seed = first_seed;
	struct tw_service_config cfg = {.size = sizeof cfg, .workers = 2};
	wanted("service", tw_service_create(&service, &cfg), 0);
	while (tw_clock_now(clock) - start_ns < span_ns)
		round_of(&seed);
	wanted("service destroy", tw_service_destroy(service), 0);
	printf("ok: %lu rounds, %ld acquires, %ld functions, %ld of them cancelled\n", rounds,
	       atomic_load(&operations), atomic_load(&started), atomic_load(&cancelled));
	return 0;
}
