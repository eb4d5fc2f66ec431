/*
 * A viewer of a published service, as tickwheel-top is one: it reads the page twice a second. It is
 * a thread of the bench. So the service's cost is measured, and of the viewer's only the reading.
 */
#ifndef BENCH_VIEWER_H
#define BENCH_VIEWER_H

#include "tickwheel.h"

struct viewer;

/* Publishes the service, and begins to look. NULL: could not. */
struct viewer *viewer_start(tw_service *service);

/* Ends the program if no page was read. NULL is allowed. */
void viewer_stop(struct viewer *viewer);

#endif
