/* The birth and the end of a limiter. */
#ifndef TW_EXECUTOR_LIMITER_LIFE_H
#define TW_EXECUTOR_LIMITER_LIFE_H

#include "executor/limiter/internal.h"

/*
 * Whether the number of permits is valid. A pool must have room for n jobs that block, and one run
 * more.
 */
bool tw__limiter_holds(tw_executor *executor, uint32_t max_concurrency, uint32_t flags);

#endif
