/* What a service does at this moment. */
#ifndef TW_WHEEL_LIVENESS_H
#define TW_WHEEL_LIVENESS_H

#include "mpsc/base/atomics.h"
#include "wheel/core/frame.h"

/* A run under way. */
struct tw__seen_run {
	tw_fn *fn;
	void *arg;
	const char *name;  /* or NULL */
	uint64_t since_ns; /* on the service's clock */
	uint32_t thread_id;
};

typedef void tw__see_run_fn(void *context, const struct tw__seen_run *run);

/*
 * Shows each run of the service, and of its pool's tasks, to `see`. A run without a date is dated
 * now. now_ns: of the service's clock. Any thread.
 */
TW_PRIVATE void tw__runs_visit(tw_service *service, uint64_t now_ns, tw__see_run_fn *see,
			       void *context);

/* The timer's name; NULL: it has none, or has ended. */
const char *tw__name_of_timer(const tw_service *service, tw_timer timer);

#endif
