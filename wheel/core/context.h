/*
 * Contexts for all that schedules (contract: tickwheel/context.h). Who takes something to run it
 * later does:
 *
 *     on taking it, on the caller's thread:   x->context = tw__context_capture();
 *     if it is then refused:                  tw__context_release(x->context);
 *     around its run:                         struct tw__context_saved saved;
 *                                             tw__context_enter(x->context, &saved);
 *                                             ... the user's function ...
 *                                             tw__context_leave(&saved);
 *     at its end, run or not, exactly once:   tw__context_release(x->context);
 *
 * Ownership: what capture returns is the caller's until it is given to release, which NULL may be,
 * too. enter and leave take nothing; they pair on one thread, and nest. All four may call hooks of
 * the user's: not under a lock, but release may be given away under none as well as called late.
 * After a fork in the user's function: leave, and no more.
 *
 * A layer that keeps contexts of its own for what it schedules through timers tells the timers not
 * to: TW_TASK_CONTEXT with context NULL, or the timer's run is under the context twice (harmless),
 * and captured twice (a cost).
 *
 * Pairing table
 *   CONTEXT1  tw__context_hooks: the hooks' fields, then CAS release (set) -> load acquire (the
 *       caller of one). The look whether there are any is relaxed: a thread sees its own set; a
 *       thread that runs something with a context acquired it from a thread that saw them.
 */
#ifndef TW_WHEEL_CONTEXT_H
#define TW_WHEEL_CONTEXT_H

#include <stdbool.h>

#include "mpsc/base/atomics.h"
#include "tickwheel/context.h"

/* What is in force; NULL: nobody has set a context or hooks. Set once. */
extern __attribute__((
    visibility("hidden"))) _Atomic(const struct tw_context_hooks *) tw__context_hooks;

/* What a thread's context was before an enter. */
struct tw__context_saved {
	void *former;
	const struct tw_context_hooks *installed; /* NULL: there were none yet */
};

void *tw__context_capture_slowly(void);
void tw__context_enter_slowly(void *context, struct tw__context_saved *saved);
void tw__context_leave_slowly(const struct tw__context_saved *saved);
void tw__context_release_slowly(void *context);

/* Contexts are on before something that names one itself runs. */
void tw__context_turn_on(void);

/* Whether a release of that context does anything. */
bool tw__context_has_release(const void *context);

static inline bool tw__context_is_on(void)
{
	return tw_unlikely(tw_load_relaxed(&tw__context_hooks) != NULL); /* CONTEXT1 */
}

static inline void *tw__context_capture(void)
{
	return tw__context_is_on() ? tw__context_capture_slowly() : NULL;
}

static inline void tw__context_enter(void *context, struct tw__context_saved *saved)
{
	saved->installed = NULL;
	if (tw__context_is_on())
		tw__context_enter_slowly(context, saved);
}

/* Looks again: the run itself may have been the first to set a context. */
static inline void tw__context_leave(const struct tw__context_saved *saved)
{
	if (tw__context_is_on())
		tw__context_leave_slowly(saved);
}

static inline void tw__context_release(void *context)
{
	if (tw_unlikely(context != NULL))
		tw__context_release_slowly(context);
}

#endif
