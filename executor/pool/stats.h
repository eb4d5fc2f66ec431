/* Statistics of a pool. */
#ifndef TW_EXECUTOR_POOL_STATS_H
#define TW_EXECUTOR_POOL_STATS_H

#include "executor/pool/internal.h"

/*
 * Tells whether the pool of the source is full: all max_workers workers are inside runs, or all
 * except one are inside jobs of limiters. out->pool_at_max: also, runs wait that need such a
 * worker. *progress changes with each run that begins or ends.
 */
bool tw__source_is_busy(void *source, struct tw_service_liveness *out, uint64_t *progress);

#endif
