/* The threads of a pool. */
#ifndef TW_EXECUTOR_POOL_WORKER_H
#define TW_EXECUTOR_POOL_WORKER_H

#include "executor/pool/parts.h"

/* A slot's first worker is about to start. */
void tw__worker_init(tw_pool *pool, unsigned index);

/* Starts the thread of a slot that has none. */
int tw__worker_start(struct tw__worker *worker, const struct tw_service_config *config);

#endif
