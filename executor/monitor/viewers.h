/* The page for viewers of one process. */
#ifndef TW_EXECUTOR_MONITOR_VIEWERS_H
#define TW_EXECUTOR_MONITOR_VIEWERS_H

#include <stdio.h>

#include "tickwheel/stats.h"

/*
 * As tw_service_stats_prometheus. Adds a line for each run under way, for the largest groups, and
 * for each bucket of the distributions: for a monitor of many processes it would be too many
 * series.
 */
int tw__viewers_write(tw_service *service, FILE *out);

#endif
