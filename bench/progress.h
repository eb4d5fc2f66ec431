/*
 * The progress of a run, on stderr: the current group and the time left. A terminal shows one line,
 * which is overwritten. Other files get a line for each group.
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
