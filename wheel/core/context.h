/*
 * Contexts for all that schedules (contract: tickwheel/context.h). A layer that takes something to
 * run it later does:
 *
 *     on taking it, on the caller's thread:   x->context = tw__context_capture();
 *     around its run:                         void *former = tw__context_enter(x->context);
 *                                             ... the user's function ...
 *                                             tw__context_leave(former);
 *
 * enter and leave pair on one thread, and nest.
 *
 * A layer that keeps contexts of its own for what it schedules through timers tells the timers not
 * to: TW_TASK_CONTEXT with context NULL, or the timer's run is under the context twice (harmless),
 * and captured twice (a cost).
 *
 * All is relaxed: a thread sees its own set, and a thread that runs something with a context
 * acquired it from a thread that had turned contexts on.
 */
#ifndef TW_WHEEL_CONTEXT_H
#define TW_WHEEL_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "mpsc/base/atomics.h"
#include "tickwheel/context.h"

/* The calling thread's. */
extern _Thread_local void *tw__context;

/* A thread of the process has set a context. Never cleared. */
extern _Atomic uint32_t tw__contexts_on;

static inline bool tw__context_is_on(void)
{
	return tw_unlikely(tw_load_relaxed(&tw__contexts_on));
}

/* Contexts are on before something that names one itself runs. */
static inline void tw__context_turn_on(void)
{
	if (!tw__context_is_on())
		tw_store_relaxed(&tw__contexts_on, 1);
}

static inline void *tw__context_capture(void)
{
	return tw__context_is_on() ? tw__context : NULL;
}

/* The former context. */
static inline void *tw__context_enter(void *context)
{
	if (!tw__context_is_on())
		return NULL;
	void *former = tw__context;
	tw__context = context;
	return former;
}

/* Looks again: the run itself may have been the first to set a context. */
static inline void tw__context_leave(void *former)
{
	if (tw__context_is_on())
		tw__context = former;
}

#endif
