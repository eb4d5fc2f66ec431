/* The figures of a service as a page for Prometheus. Part of libtickwheel-layers. */
#ifndef TICKWHEEL_PROMETHEUS_H
#define TICKWHEEL_PROMETHEUS_H

#include <stdio.h>

#include "service.h"
#include "version.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Writes all figures of a service in Prometheus' text format: counters, gauges and histograms.
 * tickwheel_prometheus(7) has bounds and labels.
 *
 *     tickwheel_timers_pending 12
 *     tickwheel_timers_ended_total{fate="fired"} 4711
 *     tickwheel_lateness_seconds_bucket{le="0.001048576"} 4702
 *     tickwheel_running_by_name{name="lookup"} 3
 *     tickwheel_layer_waiting{kind="limiter",name="database"} 17
 *
 * Blocks: if the stream does.
 * Returns:
 *   0         written
 *   -EIO      the stream has an error
 *   -ENOMEM   no memory
 */
TW_API int tw_service_stats_prometheus(tw_service *service, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
