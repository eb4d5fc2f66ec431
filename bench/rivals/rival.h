/*
 * Rivals from other languages: each repetition of a cell runs in a program of its own, which
 * measures with its own clock and reports over a pipe.
 *
 * Protocol, one line each. The bench writes the order:
 *
 *   WORKLOAD N THREADS OPS QUICK    OPS: operations per thread, 0: the program finds out;
 *                                   QUICK: 0 or 1
 *
 * The program writes:
 *
 *   cpu                    asks for its CPU time; the bench answers with nanoseconds
 *   window IN_NS SPAN_NS   timers are due from IN_NS after now, for SPAN_NS; the bench
 *                          sleeps beside it as a baseline
 *   figure NAME VALUE      a figure of the cell
 *   ops N                  the operations per thread, for the next repetitions
 *   lateness BUCKET COUNT  a bucket of the histogram (recorder.h)
 *   latest NS              the greatest lateness
 *   early N                timers that ran early
 *   violation TEXT         the rival broke a promise
 *   end                    the result is complete
 */
#ifndef BENCH_RIVALS_RIVAL_H
#define BENCH_RIVALS_RIVAL_H

#include <stdio.h>

#include "bench/workload.h"

enum { RIVAL_ARGUMENTS = 16, RIVAL_TEXT = 4096 };

struct rival_command {
	char *arguments[RIVAL_ARGUMENTS]; /* ended by NULL */
	char text[RIVAL_TEXT];            /* what the arguments point to */
	unsigned count;
	size_t used;
};

__attribute__((format(printf, 2, 3))) void rival_argument(struct rival_command *command,
							  const char *format, ...);

/* The folder of the rivals' programs, beside the bench's own. */
const char *rival_folder(void);

/* Runs the command for the order, and fills the outcome with what it reports. */
void rival_run(struct rival_command *command, const struct workload *workload,
	       const struct order *order, struct outcome *outcome);

/*
 * Prints which rivals are left out, with their number and what each of them lacks. Nothing if all
 * are here.
 */
void rivals_print_skipped(FILE *out);

/* How many rivals are left out. */
unsigned rivals_skipped(void);

/* What the rival of this name lacks; NULL if it is here, or no rival has this name. */
const char *rival_lacks(const char *name);

#endif
