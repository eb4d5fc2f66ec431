/* The config of a scheduler. */
#ifndef TW_EXECUTOR_SCHEDULER_CONFIG_H
#define TW_EXECUTOR_SCHEDULER_CONFIG_H

#include "tickwheel/scheduler.h"

/*
 * Copies a caller's config, checks it and fills in the defaults. cfg may be NULL.
 * 0, or -EINVAL and -E2BIG with a text.
 */
int tw__scheduler_config_read(struct tw_scheduler_config *config,
			      const struct tw_scheduler_config *cfg);

#endif
