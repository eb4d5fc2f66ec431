#include "executor/scheduler/priority.h"

static _Thread_local enum tw_priority current = TW_PRIORITY_NORMAL;

enum tw_priority tw__priority_swap(enum tw_priority priority)
{
	enum tw_priority former = current;
	current = priority;
	return former;
}

enum tw_priority tw_priority_current(void)
{
	return current;
}

void tw_priority_run(enum tw_priority priority, tw_fn *fn, void *arg)
{
	if (!fn)
		return;
	enum tw_priority former = tw__priority_swap(tw__priority_known(priority));
	fn(arg);
	tw__priority_swap(former);
}

void tw_priority_next(tw_fn *fn, void *arg)
{
	tw_priority_run(current < TW_PRIORITY_NORMAL ? TW_PRIORITY_NORMAL : current, fn, arg);
}

struct tw_priority_wrapped tw_priority_wrap(tw_fn *fn, void *arg)
{
	return (struct tw_priority_wrapped){.fn = fn, .arg = arg, .priority = current};
}

void tw_priority_call(void *wrapped)
{
	const struct tw_priority_wrapped *what = wrapped;
	if (what)
		tw_priority_run(what->priority, what->fn, what->arg);
}
