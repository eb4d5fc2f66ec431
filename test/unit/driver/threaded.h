/* Services whose callbacks run on threads of their own, on a clock that the test moves. */
#ifndef TEST_UNIT_DRIVER_THREADED_H
#define TEST_UNIT_DRIVER_THREADED_H

#include <sched.h>

#include "test/support/rig_suite.h"

/* With a tick thread that runs the callbacks. */
static inline void open_threaded(void)
{
	struct tw_service_config cfg = {.size = sizeof(cfg), .executor = tw_executor_inline()};
	queue_executor_open(&queue);
	rig_open(&rig, &cfg);
}

/* Gives way until as many callbacks have returned; the test's time limit guards it. */
static inline void await_runs(tw_service *service, uint64_t runs)
{
	while (stats_of(service).runs < runs)
		sched_yield();
}

#endif
