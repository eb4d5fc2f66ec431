/* The page's first table: a line per work, ours beside the best of each kind. */
#ifndef BENCH_SUMMARY_H
#define BENCH_SUMMARY_H

#include <stdio.h>

#include "bench/results.h"

void summary_write(FILE *out, const struct results *results);

#endif
