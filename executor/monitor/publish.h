/* A service that shows itself to tickwheel-top. The contract is in tickwheel/stats.h. */
#ifndef TW_EXECUTOR_MONITOR_PUBLISH_H
#define TW_EXECUTOR_MONITOR_PUBLISH_H

#include "tickwheel/stats.h"

/*
 * Ends what tw_service_publish began, if it was called. No other call on the service may be under
 * way.
 */
void tw__unpublish(tw_service *service);

/* The same in a forked child, where the thread is not: gives up the child's copies. */
void tw__unpublish_forked(tw_service *service);

#endif
