/* What has moved between two runs of the bench. */
#ifndef BENCH_COMPARE_H
#define BENCH_COMPARE_H

#include <stdio.h>

#include "bench/machine.h"
#include "bench/results.h"

void compare_results(FILE *out, const struct machine *old_machine, const struct results *old,
		     const struct machine *machine, const struct results *results);

#endif
