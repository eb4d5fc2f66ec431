#include "mpsc/base/misuse.h"

#include <stdarg.h>
#include <stdio.h>

#include "mpsc/base/atomics.h"

static _Atomic(tw_misuse_fn *) misuse_hook;

void tw_set_misuse_hook(tw_misuse_fn *hook)
{
	tw_store_relaxed(&misuse_hook, hook);
}

tw_cold void tw__refuse_tell(const char *call, const char *format, ...)
{
	tw_misuse_fn *hook = tw_load_relaxed(&misuse_hook);
	if (!hook)
		return;
	char text[256];
	size_t n = (size_t)snprintf(text, sizeof text, "%s: ", call);
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text + n, sizeof text - n, format, arguments);
	va_end(arguments);
	hook(text);
}
