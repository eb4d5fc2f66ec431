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
 * to: TW_TASK_CONTEXT with context NULL. Else the context is captured twice, which is harmless, but
 * costs.
 */
#ifndef TW_WHEEL_CONTEXT_H
#define TW_WHEEL_CONTEXT_H

#include "mpsc/queue.h"
#include "tickwheel/context.h"

static inline void *tw__context_capture(void)
{
	return tw__thread.context;
}

/* The former context. */
static inline void *tw__context_enter(void *context)
{
	void *former = tw__thread.context;
	tw__thread.context = context;
	return former;
}

static inline void tw__context_leave(void *former)
{
	tw__thread.context = former;
}

#endif
