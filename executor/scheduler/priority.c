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
