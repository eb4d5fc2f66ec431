/*
 * Context: a pointer that follows a request through what it schedules, such as its id or its trace.
 *
 * Each thread has a context, NULL at first. A timer, task, job or action takes that of the thread
 * that schedules it. Its callback and its release run under it; then the worker's former context is
 * back.
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
 * Returns: the context; NULL if there is none.
 */
TW_API void *tw_context_get(void);

/* Sets the calling thread's context. NULL: none. */
TW_API void tw_context_set(void *context);

#ifdef __cplusplus
}
#endif
#endif
