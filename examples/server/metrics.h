/*
 * The answer to GET /metrics: the service's figures in the text format of Prometheus (version
 * 0.0.4).
 */
#ifndef EXAMPLES_SERVER_METRICS_H
#define EXAMPLES_SERVER_METRICS_H

#include <stdbool.h>
#include <stddef.h>

#include "tickwheel/layers.h"

/* *text is the caller's to free. False: out of memory. */
bool metrics(tw_service *service, char **text, size_t *length);

#endif
