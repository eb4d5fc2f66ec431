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

/*
 * Hooks for systems that keep a context of their own, such as tracing. They replace the pointer in
 * the whole process; tw_context_get and tw_context_set then are a plain variable of the thread.
 *
 * A hook runs on any thread, also inside calls of the library. It must be short, must not wait for
 * other threads, and may call nothing of the library except tw_context_get and tw_context_set.
 *
 *   capture   when something is scheduled, on that thread: returns what it shall carry; NULL:
 *             nothing
 *   install   before a callback or release, on its thread, with the captured value, or NULL; its
 *             result is given to restore
 *   restore   after it, on the same thread; pairs nest
 *   release   once for each captured value that is not NULL: when its timer or task has ended, or
 *             was refused; after the timer's own release. May be NULL. Not called in a forked child
 */
struct tw_context_hooks {
	size_t size; /* sizeof(struct tw_context_hooks) */
	void *(*capture)(void);
	void *(*install)(void *captured);
	void (*restore)(void *former);
	void (*release)(void *captured);
};

/*
 * Sets the hooks, once in a process, before contexts are used. The struct is copied.
 *
 * Threads: any.
 * Returns:
 *   0         set
 *   -EINVAL   NULL; a size too small; capture, install or restore is NULL
 *   -E2BIG    non-zero bytes beyond the known struct
 *   -EBUSY    hooks were set before, or a context is in use; nothing changed: set them first
 */
TW_API int tw_context_hooks_set(const struct tw_context_hooks *hooks);

#ifdef __cplusplus
}
#endif
#endif
