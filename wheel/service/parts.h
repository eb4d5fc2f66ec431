/* A service over a given executor: its birth, its end, and what runs. */
#ifndef TW_WHEEL_SERVICE_PARTS_H
#define TW_WHEEL_SERVICE_PARTS_H

#include "wheel/core/frame.h"

/* -------------------------------------------------------------------- create.c */

/*
 * Copies a config of an older or newer program, with the defaults except for executor and workers.
 */
int tw__config_read(struct tw_service_config *out, const struct tw_service_config *cfg);

/* Over cfg->executor; no defaults are left. As tw_service_create. */
int tw__core_create(tw_service **out, const struct tw_service_config *cfg);

/* Frees a service after a close that left nothing. */
void tw__core_free(tw_service *service);

/* The same in a forked child, whatever the state of things. */
void tw__core_free_forked(tw_service *service);

/* --------------------------------------------------------------------- close.c */

/*
 * tw_service_close. quiet(service) is called once, when nothing is left, while other calls still
 * wait: it ends the executor's threads. alone: no other thread uses the service.
 */
int tw__core_close(tw_service *service, enum tw_close_mode mode, uint64_t timeout_ns,
		   void (*quiet)(tw_service *), bool alone);

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
