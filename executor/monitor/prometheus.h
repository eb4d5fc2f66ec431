/* A service as text in Prometheus' exposition format. The contract is in tickwheel/stats.h. */
#ifndef TW_EXECUTOR_MONITOR_PROMETHEUS_H
#define TW_EXECUTOR_MONITOR_PROMETHEUS_H

#include <stdbool.h>
#include <stdio.h>

#include "tickwheel/stats.h"

/*
 * As tw_service_stats_prometheus. With `live` it also writes a line for each run under way, and
 * each bucket of the distributions. That is for a viewer of one process: for a monitor of many it
 * would be too many series.
 */
int tw__prometheus_write(tw_service *service, FILE *out, bool live);

#endif
