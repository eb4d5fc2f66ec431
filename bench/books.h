/* The books of a run: every timer that was scheduled was cancelled, has fired, or is pending. */
#ifndef BENCH_BOOKS_H
#define BENCH_BOOKS_H

#include <stdint.h>

#include "bench/outcome.h"
#include "bench/subject.h"

/* Looks until they balance, for some seconds; then it is a violation. Nobody else uses the subject meanwhile. */
void check_books(const struct subject *subject, void *self, uint64_t scheduled, uint64_t cancelled,
		 struct outcome *outcome);

#endif
