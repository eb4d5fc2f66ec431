/* A worker: finding runs. */
#ifndef TW_EXECUTOR_POOL_WORKER_H
#define TW_EXECUTOR_POOL_WORKER_H

#include "executor/pool/parts.h"

void *tw__worker_main(void *worker);

bool tw__worker_find(struct tw__worker *self, struct tw__find *find);

/* Tells whether runs wait that any worker may take, except those of open batches. */
bool tw__pool_more_waits(tw_pool *pool);

/*
 * The calling worker, if it is one of the pool behind the executor and tw__worker_is_awaited can
 * answer for it: the pool may grow. Else NULL.
 */
struct tw__worker *tw__worker_that_knows(tw_executor *executor);

#endif
