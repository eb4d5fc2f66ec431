/*
 * What runs, and for how much longer: one line that is written over on a terminal, else a line per
 * group. On stderr.
 */
#ifndef BENCH_PROGRESS_H
#define BENCH_PROGRESS_H

#include "bench/plan.h"

/* before_s: about what is run before the plan. */
void progress_begin(const struct plan *plan, double before_s);
void progress_group(const struct group *group);
void progress_run(const struct group *group, const struct candidate *candidate, unsigned rep);
void progress_ran(const struct group *group);

/* Before something else is printed. */
void progress_clear(void);

#endif
