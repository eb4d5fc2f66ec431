/* The config of a service. */
#ifndef TW_WHEEL_CONFIG_H
#define TW_WHEEL_CONFIG_H

#include "tickwheel/service.h"

/*
 * Copies a config that may be older or newer than this library and fills in the defaults,
 * except for executor and workers.
 */
int tw__config_read(struct tw_service_config *out, const struct tw_service_config *cfg);

#endif
