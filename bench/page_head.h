/* The head of the page: style, machine, what failed, the summary and how to read the rest. */
#ifndef BENCH_PAGE_HEAD_H
#define BENCH_PAGE_HEAD_H

#include <stdbool.h>
#include <stdio.h>

#include "bench/machine.h"
#include "bench/results.h"

/* drawn: the page has plots. Without them the head says so. */
void page_head_write(FILE *out, const struct machine *machine, const struct results *results,
		     bool drawn);

#endif
