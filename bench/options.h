/* The command line. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum { MAX_LIST = 32 };

/* Lists are empty if the option was not given: everything, or the workload's own choice. */
struct options {
	const char *out; /* NULL: no file */
	bool quick, full;
	bool growth;   /* curves only */
	unsigned reps; /* 0: the workload's own */
	const char *workloads[MAX_LIST], *candidates[MAX_LIST];
	uint32_t sizes[MAX_LIST], threads[MAX_LIST];
	unsigned workload_count, candidate_count, size_count, thread_count;
	/* NULL: nothing is compared; with the results of this run */
	const char *compare_old, *compare_new;
	/* results of which only the page is made; NULL: none */
	const char *report;
	const char *page; /* NULL: report.html beside the results */
};

/* Ends the program: after --help, or with status 2 if it cannot be understood. */
void options_parse(struct options *options, int argc, char **argv);

bool options_want_workload(const struct options *options, const char *name);
bool options_want_candidate(const struct options *options, const char *name);

/* A word or two for how much is run: "default", "quick", "full", "growth", "quick growth". */
const char *options_mode(const struct options *options);

#endif
