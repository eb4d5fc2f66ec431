/* The ledger of a run: every timer that was scheduled was cancelled, has fired, or is pending. */
#ifndef BENCH_LEDGER_H
#define BENCH_LEDGER_H

#include <stdint.h>

#include "bench/outcome.h"
#include "bench/candidate.h"

/*
 * Looks until they balance, for some seconds; then it is a violation. Nobody else uses the
 * candidate meanwhile.
 */
void check_ledger(const struct candidate *candidate, void *self, uint64_t scheduled,
		  uint64_t cancelled, struct outcome *outcome);

#endif
