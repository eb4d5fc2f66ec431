/*
 * Context: a pointer that follows a request through what it schedules, such as its id or its trace.
 *
 * Each thread has a context pointer, NULL at first. A timer or task takes the context of the thread
 * that schedules it. Its callback and its release run under that context; then the worker's former
 * context is back. A series keeps the context of its scheduling, and a reset does not change it.
 * What is scheduled without a context runs without one.
 *
 * Timers, pool tasks, strand tasks, jobs and actions carry it.
 *
 * Cost: while no thread of the process has set a context, one branch. A timer with a context has an
 * extension record, as one with a release has.
 *
 * Threads: any, also from callbacks and in a forked child.
 */
#ifndef TICKWHEEL_CONTEXT_H
#define TICKWHEEL_CONTEXT_H

#include <stddef.h>

#include "version.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Returns the calling thread's context. The library never dereferences or frees it.
 *
 * Threads: any. Never blocks.
 * Returns: the context; NULL if there is none.
 */
TW_API void *tw_context_get(void);

/*
 * Sets the calling thread's context. NULL: none.
 *
 * Threads: any. Never blocks.
 */
TW_API void tw_context_set(void *context);

#ifdef __cplusplus
}
#endif
#endif
