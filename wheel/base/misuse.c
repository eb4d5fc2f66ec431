#include "wheel/base/misuse.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "mpsc/base/atomics.h"

/* Relaxed: a function is constant, so a thread that sees the pointer may call it. */
static _Atomic(tw_misuse_fn *) misuse_hook;

void tw_set_misuse_hook(tw_misuse_fn *hook)
{
	tw_store_relaxed(&misuse_hook, hook);
}

void tw__misuse_tell(const char *format, ...)
{
	tw_misuse_fn *hook = tw_load_relaxed(&misuse_hook);
	if (!hook)
		return;
	char text[256];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	hook(text);
}

void tw__refuse_tell(const char *call, const char *format, ...)
{
	char text[256];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	tw__misuse_tell("%s: %s", call, text);
}
