/* Which worker sleeps, and who wakes it. */
#ifndef TW_EXECUTOR_POOL_WAKE_H
#define TW_EXECUTOR_POOL_WAKE_H

#include "executor/pool/parts.h"

/*
 * Work has been put where workers find it (the first half of POOL2): wakes one, or arms the starter
 * if all are busy.
 */
void tw__pool_call_for_help(tw_pool *pool);

/* Lets all workers go on and end. */
void tw__pool_wake_all(tw_pool *pool);

/*
 * Sleeps until the worker is called. It is called while counted as searching.
 *
 * True: it has found work. False: it was called, the pool stops, or it ends (self->retired).
 * Counted as searching afterwards, except if it ends or the pool stops.
 */
bool tw__worker_sleep(struct tw__worker *self, struct tw__find *find);

#endif
