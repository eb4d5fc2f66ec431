/*
 * Context: what belongs to a request (its id, its trace, its tenant) goes with what the request schedules.
 *
 * Each thread has a context pointer, NULL at first. What it is when a timer or task is **scheduled** is what it is in the callback,
 * and in the timer's release, on whatever thread they run; afterwards that thread's former context is back, also if the callback has
 * set another. Counted from the scheduling, not from anything's creation: a series keeps the context of its scheduling in all its runs,
 * and a reset changes nothing. What was scheduled without a context runs without one, whatever the thread's own is: a loop that calls
 * tw_service_advance under a context of its own does not lend it to callbacks.
 *
 * It goes with timers (all calls that schedule), with tasks (tw_pool_submit), and with what the layers above take.
 *
 * Cost. As long as nobody in the process has set a context: one branch. A timer with a context has a side record, as one with a release has;
 * one without has none.
 *
 * Threads: any thread, any time, also from callbacks, also in a forked child (a context is the thread's, and no service's).
 */
#ifndef TICKWHEEL_CONTEXT_H
#define TICKWHEEL_CONTEXT_H

#include <stddef.h>

#include "version.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The calling thread's context pointer: never read through by the library, and not owned by it. */
TW_API void *tw_context_get(void);
TW_API void tw_context_set(void *context);

/*
 * For systems that keep a context of their own (tracing): they take the pointer's place for the whole process, which is then
 * no longer carried (tw_context_get and _set still work, as a plain variable of the thread).
 *
 * Each may be called on any thread, also inside of the library's calls: it must be short, must not wait for other threads, and must not
 * call the library, but for tw_context_get and _set.
 *
 *   capture  at scheduling, on the scheduling thread: what is to be carried; NULL: nothing. From here on it is the timer's or task's.
 *   install  before a callback or release, on its thread, with what was captured, or NULL for what was scheduled without. What
 *            it returns is given to restore.
 *   restore  after it, on the same thread. Pairs nest.
 *   release  once for each capture that was not NULL: when its timer or task has come to its end, whatever the end, or when it was refused.
 *            Where a timer's release would be called (service.h), after it. May be NULL: nothing to give back. Not called in a forked child.
 */
struct tw_context_hooks {
	size_t size; /* sizeof(struct tw_context_hooks) */
	void *(*capture)(void);
	void *(*install)(void *captured);
	void (*restore)(void *former);
	void (*release)(void *captured);
};

/*
 * Once for each process, before contexts are used; for good. The struct is copied. 0. -EINVAL: NULL, smaller than its first four
 * fields, or one of capture, install and restore is NULL. -E2BIG: non-zero bytes beyond the known struct. -EBUSY: hooks
 * were set before, or a context is in use: some thread has set one, or a task has named one. Nothing has changed then.
 */
TW_API int tw_context_hooks_set(const struct tw_context_hooks *hooks);

#ifdef __cplusplus
}
#endif
#endif
