/* The pool of worker threads; see pool.c. */
#ifndef TW_EXECUTOR_POOL_H
#define TW_EXECUTOR_POOL_H

#include "tickwheel/executor.h"
#include "tickwheel/service.h"

struct tw__pool;

/* workers: 1 .. 1024. Takes thread settings from the config. 0, -ENOMEM, or what creating a thread failed with. */
int tw__pool_create(struct tw__pool **out, unsigned workers, const struct tw_service_config *config);

/* The face that a service hands over to. For one service: its ring has one producer. */
tw_executor *tw__pool_executor(struct tw__pool *pool);

/* Stops and frees it. Nothing may be queued, nothing may run. */
void tw__pool_destroy(struct tw__pool *pool);

/* Frees it in a forked child, where its threads are not. */
void tw__pool_free_forked(struct tw__pool *pool);

#endif
