/* The birth and the end of a service over a given executor. */
#ifndef TW_WHEEL_CREATE_H
#define TW_WHEEL_CREATE_H

#include "tickwheel/service.h"

/*
 * Copies a config that may be older or newer than this library and fills in the defaults,
 * except for executor and workers.
 */
int tw__config_read(struct tw_service_config *out, const struct tw_service_config *cfg);

/*
 * Makes a service over cfg->executor, which is given. 0, or as tw_service_create. cfg is complete:
 * no defaults left.
 */
int tw__core_create(tw_service **out, const struct tw_service_config *cfg);

/* After a close that left nothing. */
void tw__core_free(tw_service *service);

/* In a forked child, whatever the state of things. */
void tw__core_free_forked(tw_service *service);

#endif
