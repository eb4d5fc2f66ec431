#include "wheel/core/context.h"

#include <errno.h>

#include "wheel/base/misuse.h"
#include "wheel/base/struct_read.h"

static _Thread_local void *current;

_Atomic(const struct tw_context_hooks *) tw__context_hooks;

/* ------------------------------------------------------ the pointer's own hooks */

static void *pointer_install(void *captured)
{
	void *former = current;
	current = captured;
	return former;
}

static void pointer_restore(void *former)
{
	current = former;
}

static const struct tw_context_hooks pointer_hooks = {sizeof pointer_hooks, tw_context_get,
						      pointer_install, pointer_restore, NULL};

void tw__context_turn_on(void)
{
	const struct tw_context_hooks *none = NULL;
	if (!tw__context_is_on())
		/* CONTEXT1; or another was faster */
		(void)tw_cas_acq_rel(&tw__context_hooks, &none, &pointer_hooks);
}

void *tw_context_get(void)
{
	return current;
}

void tw_context_set(void *context)
{
	if (context)
		tw__context_turn_on();
	current = context;
}

/* ---------------------------------------------------------------------- setting */

int tw_context_hooks_set(const struct tw_context_hooks *hooks)
{
	static struct tw_context_hooks kept;
	static _Atomic uint32_t taken; /* a caller is writing `kept`, or has */
	struct tw_context_hooks read;
	const struct tw_context_hooks *none = NULL;
	if (!hooks)
		return tw__invalid("hooks is NULL");
	int r = TW__STRUCT_READ(tw_context_hooks, &read, release, hooks);
	if (r)
		return r;
	if (!read.capture || !read.install || !read.restore)
		return tw__invalid("capture, install and restore must not be NULL");
	if (tw__context_is_on() || tw_exchange_acq_rel(&taken, 1))
		return -EBUSY;
	kept = read;
	return tw_cas_acq_rel(&tw__context_hooks, &none, &kept) ? 0
								/*
								 * CONTEXT1; else contexts are on
								 * for good
								 */
								: -EBUSY;
}

/* ------------------------------------------------------------------------ using */

static const struct tw_context_hooks *in_force(void)
{
	return tw_load_acquire(&tw__context_hooks); /* CONTEXT1 */
}

void *tw__context_capture_slowly(void)
{
	return in_force()->capture();
}

void tw__context_enter_slowly(void *context, struct tw__context_saved *saved)
{
	saved->installed = in_force();
	saved->former = saved->installed->install(context);
}

/* Nothing was on at the beginning: then the thread had no context. */
void tw__context_leave_slowly(const struct tw__context_saved *saved)
{
	if (saved->installed)
		saved->installed->restore(saved->former);
	else
		current = NULL;
}

bool tw__context_has_release(const void *context)
{
	return context && in_force()->release;
}

void tw__context_release_slowly(void *context)
{
	const struct tw_context_hooks *hooks = in_force();
	if (hooks->release)
		hooks->release(context);
}
