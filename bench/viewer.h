/*
 * A viewer of a published service, as tickwheel-top is one: it reads the page twice a second. It is
 * a thread of the bench. So the service's cost is measured, and of the viewer's only the reading.
 *
 * Runs with and without a viewer differ by more than a look takes. So viewer_report also says what
 * the looks of all runs took: the CPU time of the two threads that exist for them.
 */
#ifndef BENCH_VIEWER_H
#define BENCH_VIEWER_H

#include <stdbool.h>
#include <stdio.h>

#include "tickwheel.h"

struct viewer;

/* To be called first: makes what viewer_report writes, of this process and its children. */
bool viewers_share(void);

/* Publishes the service, and begins to look. NULL: could not. */
struct viewer *viewer_start(tw_service *service);

/* Ends the program if no page was read. NULL is allowed. */
void viewer_stop(struct viewer *viewer);

/* The CPU time of a look. Writes nothing where no viewer has looked. */
void viewer_report(FILE *out);

#endif
