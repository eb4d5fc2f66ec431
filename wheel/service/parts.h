/* What the files of this room, and the Prometheus page, call of each other. */
#ifndef TW_WHEEL_SERVICE_PARTS_H
#define TW_WHEEL_SERVICE_PARTS_H

#include "wheel/core/frame.h"

/* -------------------------------------------------------------------- create.c */

/* The pool is idle, or this is a forked child. The pool ends if it was the service's own. */
void tw__service_leave_pool(tw_service *service);

/* Frees a service that is closed, or was never open, or is a forked child's. */
void tw__service_free(tw_service *service);

/* ------------------------------------------------------------------- inspect.c */

struct tw__seen_run {
	tw_fn *fn;
	void *arg;
	const char *name;  /* or NULL */
	uint64_t since_ns; /* of the service's clock */
	uint32_t thread_id;
};

typedef void tw__see_run_fn(void *context, const struct tw__seen_run *run);

/*
 * Shows each run of the service and of its pool's tasks. now_ns: of the service's clock. Any
 * thread.
 */
TW_PRIVATE void tw__runs_visit(tw_service *service, uint64_t now_ns, tw__see_run_fn *see,
			       void *context);

#endif
