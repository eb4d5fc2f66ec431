#include "contexts.h"

#include "expect.h"
#include "tickwheel/context.h"

int captures, releases;

static void *capture(void)
{
	captures += tw_context_get() != NULL;
	return tw_context_get();
}

static void *install(void *context)
{
	void *former = tw_context_get();
	tw_context_set(context);
	return former;
}

static void restore(void *former)
{
	tw_context_set(former);
}

static void release(void *context)
{
	releases += context != NULL;
}

void contexts_count(void)
{
	const struct tw_context_hooks hooks = {sizeof hooks, capture, install, restore, release};
	expect_eq(tw_context_hooks_set(&hooks), 0);
}
