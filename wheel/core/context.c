#include "wheel/core/context.h"

void *tw_context_get(void)
{
	return tw__thread.context;
}

void tw_context_set(void *context)
{
	tw__thread.context = context;
}
