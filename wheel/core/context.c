#include "wheel/core/context.h"

_Thread_local void *tw__context;
_Atomic uint32_t tw__contexts_on;

void *tw_context_get(void)
{
	return tw__context;
}

void tw_context_set(void *context)
{
	if (context)
		tw__context_turn_on();
	tw__context = context;
}
