/*
 * What stress programs share: SECONDS and SEED from the command line, the time that is left, and
 * the end of a program that finds a violation. Each program is one file and includes this one.
 */
#ifndef TEST_STRESS_STRESS_H
#define TEST_STRESS_STRESS_H

#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tickwheel.h"

static uint64_t stress_seed;       /* repeats what is tried, not how the threads interleave */
static atomic_ulong stress_rounds; /* counted by the program */
static uint64_t stress_until_ns;

static _Noreturn void violation(const char *what, long long value)
{
	fflush(stdout);
	fprintf(stderr, "VIOLATION (seed %" PRIu64 ", round %lu): %s: %lld\n", stress_seed,
		atomic_load(&stress_rounds), what, value);
	_exit(1);
}

static inline void wanted(const char *what, long long is, long long should)
{
	if (is != should)
		violation(what, is);
}

static inline bool stress_goes_on(void)
{
	return tw_clock_now(tw_clock_monotonic()) < stress_until_ns;
}

/* The first call of main: prints the seed and returns it. Exits if the arguments are wrong. */
static inline uint64_t stress_begin(int argc, char **argv)
{
	const char *slash = strrchr(argv[0], '/'), *name = slash ? slash + 1 : argv[0];
	double seconds = argc > 1 ? atof(argv[1]) : 0;
	uint64_t now_ns = tw_clock_now(tw_clock_monotonic());
	if (argc > 3 || seconds <= 0) {
		fprintf(stderr, "usage: %s SECONDS [SEED]\n", name);
		exit(2);
	}
	stress_seed = argc == 3 ? strtoull(argv[2], NULL, 0) : now_ns;
	stress_until_ns = now_ns + (uint64_t)(seconds * (double)TW_SECOND);
	printf("%s: seed %" PRIu64 "\n", name, stress_seed);
	return stress_seed;
}

#endif
