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
 *
 *     tickwheel_timers_pending 12
 *     tickwheel_timers_ended_total{fate="fired"} 4711
 *     tickwheel_lateness_seconds_bucket{le="0.001048576"} 4702
 *     tickwheel_running_by_name{kind="job",name="lookup"} 3
 *
 * The bounds of the histograms are the same in every process: the powers of two from 2^10 ns (1 us)
 * to 2^36 ns (69 s). So sums over processes are exact.
 *
 * The names of what runs are labels. A byte that is not printable UTF-8 is shown as \xHH, and a
 * backslash before xHH as \x5c. So different names have different labels.
 *
 * The text is a whole page. A service with a name (tw_service_config.name) has it as the label
 * `service` of each sample. Several services are several pages, each at an address of its own.
 * The decimal point does not depend on the locale.
 *
 * Threads: any. Takes what tw_service_stats, _histograms, _liveness and _pool_stats take.
 * Returns:
 *   0         written
 *   -EINVAL   an argument is NULL
 *   -EIO      the stream has an error
 *   -ENOMEM   no memory
 *   -EPERM    in a forked child
 */
TW_API int tw_service_stats_prometheus(tw_service *service, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
