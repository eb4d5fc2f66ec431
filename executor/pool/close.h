/* The pool's end. */
#ifndef TW_EXECUTOR_POOL_CLOSE_H
#define TW_EXECUTOR_POOL_CLOSE_H

#include "executor/pool/parts.h"

/*
 * Ends the threads, and waits for them. The starter ends first: while runs wait behind blocked
 * workers it is still needed, and then no thread is started any more.
 */
void tw__pool_stop(tw_pool *pool);

/* Frees all. No thread is left. */
void tw__pool_free(tw_pool *pool);

#endif
