/*
 * The frame of the stress programs. A program is its load: it includes this file, defines a round
 * and a report, and its main is one call of stress_play.
 *
 *   PROGRAM SECONDS [SEED]
 *
 * The seed repeats what is tried, not how the threads interleave. A program that finds a violation
 * prints it with the seed, and ends.
 */
#ifndef TEST_STRESS_STRESS_H
#define TEST_STRESS_STRESS_H

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "test/support/random.h"
#include "tickwheel/layers.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { STRESS_SANITIZED = true };
#else
enum { STRESS_SANITIZED = false };
#endif

static uint64_t stress_seed;
static atomic_ulong stress_rounds;
static atomic_bool stress_stop; /* set by watch_threads */
static uint64_t stress_until_ns, stress_told_ns;
static void (*stress_report)(const char *word); /* prints a line that begins with the word */
static tw_service *stress_dumped;               /* what a violation dumps, or NULL */

/*
 * The monotonic clock, which most services here have, from the kernel itself: neither the library's
 * reading, nor one of a preloaded library.
 */
static inline uint64_t stress_now_ns(void)
{
	struct timespec now;
	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * TW_SECOND + (uint64_t)now.tv_nsec;
}

static inline void stress_sleep(uint64_t ns)
{
	nanosleep(&(struct timespec){.tv_sec = (time_t)(ns / TW_SECOND),
				     .tv_nsec = (long)(ns % TW_SECOND)},
		  NULL);
}

static inline void violation_begins(void)
{
	fflush(stdout);
	fprintf(stderr, "VIOLATION (seed %" PRIu64 ", round %lu): ", stress_seed,
		atomic_load(&stress_rounds));
}

static inline _Noreturn void violation_of(const char *what, uint64_t handle, long long value)
{
	violation_begins();
	fprintf(stderr, "%s: %lld", what, value);
	if (handle)
		fprintf(stderr, ", handle %#" PRIx64, handle);
	fprintf(stderr, "\n");
	if (stress_dumped)
		tw_service_dump(stress_dumped, stderr);
	_exit(1);
}

static inline _Noreturn void violation(const char *what, long long value)
{
	violation_of(what, 0, value);
}

static inline void wanted(const char *what, long long is, long long should)
{
	if (is != should)
		violation(what, is);
}

/* Polls until the condition holds. A violation after half a minute. */
#define AWAIT(condition, what)                                              \
	do {                                                                \
		uint64_t await_until_ns = stress_now_ns() + 30 * TW_SECOND; \
		while (!(condition)) {                                      \
			if (stress_now_ns() > await_until_ns)               \
				violation(what, 0);                         \
			usleep(50);                                         \
		}                                                           \
	} while (0)

enum { STRESS_THREADS_MOST = 256 };

static struct stress_thread {
	pthread_t id;
	void (*main)(unsigned number, uint64_t seed);
	unsigned number;
	uint64_t seed;
} stress_threads[STRESS_THREADS_MOST];
static unsigned stress_threads_begun, stress_threads_joined;

static inline void *stress_thread_main(void *arg)
{
	const struct stress_thread *thread = arg;
	thread->main(thread->number, thread->seed);
	return NULL;
}

/* Threads with the numbers 0 .. count - 1, each with a seed of its own. */
static inline void start_threads(unsigned count, void (*main)(unsigned number, uint64_t seed),
				 uint64_t *seed)
{
	for (unsigned i = 0; i < count; i++) {
		struct stress_thread *thread = &stress_threads[stress_threads_begun++];
		*thread =
		    (struct stress_thread){.main = main, .number = i, .seed = random_next(seed)};
		wanted("a thread", pthread_create(&thread->id, NULL, stress_thread_main, thread),
		       0);
	}
}

/* The oldest `count` of those that were started. */
static inline void join_threads(unsigned count)
{
	for (; count > 0; count--)
		pthread_join(stress_threads[stress_threads_joined++].id, NULL);
	if (stress_threads_joined == stress_threads_begun)
		stress_threads_joined = stress_threads_begun = 0;
}

static inline void join_all_threads(void)
{
	join_threads(stress_threads_begun - stress_threads_joined);
}

static inline long resident_kib(void)
{
	long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");
	if (!file || fscanf(file, "%*s %ld", &pages) != 1)
		violation("no /proc/self/statm", 0);
	fclose(file);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

struct stress_ledger {
	uint64_t scheduled, fired, cancelled, runs;
};

static inline tw_service *open_service(struct tw_service_config config)
{
	tw_service *service;
	config.size = sizeof config;
	wanted("tw_service_create", tw_service_create(&service, &config), 0);
	return service;
}

/* Drops what is pending. Nothing runs any more. */
static inline void close_service(tw_service *service)
{
	wanted("tw_service_close", tw_service_close(service, TW_CLOSE_DROP, TW_FOREVER), 0);
}

/* A closed service: its ledger is the program's, and it is sound. */
static inline void end_service(tw_service *service, struct stress_ledger ledger)
{
	struct tw_service_stats stats = {.size = sizeof stats};
	char why[256] = "";
	wanted("tw_service_stats", tw_service_stats(service, &stats), 0);
	if (stats.scheduled != ledger.scheduled || stats.fired != ledger.fired ||
	    stats.cancelled != ledger.cancelled || stats.runs != ledger.runs || stats.pending ||
	    stats.disarmed || stats.scheduled != stats.fired + stats.cancelled + stats.dropped) {
		tw_service_dump(service, stderr);
		violation("the ledger does not balance", (long long)ledger.scheduled);
	}
	wanted(why, tw_service_validate(service, why, sizeof why), 0);
	wanted("tw_service_destroy", tw_service_destroy(service), 0);
}

/* Reports once a second. */
static inline bool stress_goes_on(void)
{
	uint64_t now_ns = stress_now_ns();
	if (stress_report && now_ns > stress_told_ns + TW_SECOND) {
		stress_told_ns = now_ns;
		stress_report("  ...");
		fflush(stdout);
	}
	return now_ns < stress_until_ns;
}

/* For threads that work all the time: until the seconds have passed, looks 20 times a second. */
static inline void watch_threads(void (*look)(void))
{
	while (stress_goes_on()) {
		stress_sleep(50 * TW_MILLISECOND);
		if (look)
			look();
	}
	atomic_store(&stress_stop, true);
	join_all_threads();
}

/* Prints the seed and returns it. Exits if the arguments are wrong. */
static inline uint64_t stress_begin(int argc, char **argv)
{
	const char *slash = strrchr(argv[0], '/'), *name = slash ? slash + 1 : argv[0];
	double seconds = argc > 1 ? atof(argv[1]) : 0;
	if (argc > 3 || seconds <= 0) {
		fprintf(stderr, "usage: %s SECONDS [SEED]\n", name);
		exit(2);
	}
	stress_told_ns = stress_now_ns();
	stress_seed = argc == 3 ? strtoull(argv[2], NULL, 0) : stress_told_ns;
	stress_until_ns = stress_told_ns + (uint64_t)(seconds * (double)TW_SECOND);
	alarm((unsigned)seconds * 2 + 300); /* a round that stands still */
	printf("%s: seed %" PRIu64 "\n", name, stress_seed);
	return stress_seed;
}

/* Rounds until the seconds have passed. A round may also look at stress_goes_on itself. */
static inline int stress_play(int argc, char **argv, void (*round_of)(uint64_t *seed),
			      void (*report)(const char *word))
{
	uint64_t seed = stress_begin(argc, argv);
	stress_report = report;
	do {
		round_of(&seed);
		atomic_fetch_add(&stress_rounds, 1);
	} while (stress_goes_on());
	report("ok:");
	return 0;
}

#endif
