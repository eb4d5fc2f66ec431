/* Services as text in Prometheus' exposition format. The contract is in tickwheel/stats.h. */
#ifndef TW_EXECUTOR_MONITOR_PROMETHEUS_H
#define TW_EXECUTOR_MONITOR_PROMETHEUS_H

#include "executor/monitor/page.h"

/* The figures of all services of the page. */
void tw__prometheus_figures(struct tw__page *page);

#endif
