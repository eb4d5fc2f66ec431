/* A thread's current priority. */
#ifndef TW_EXECUTOR_SCHEDULER_PRIORITY_H
#define TW_EXECUTOR_SCHEDULER_PRIORITY_H

#include "tickwheel/scheduler.h"

/* Sets the thread's priority. Returns the former one. */
enum tw_priority tw__priority_swap(enum tw_priority priority);

static inline enum tw_priority tw__priority_known(enum tw_priority priority)
{
	unsigned number = (unsigned)priority;
	return number >= TW_PRIORITY_IMMEDIATE && number <= TW_PRIORITY_IDLE ? priority
									     : TW_PRIORITY_NORMAL;
}

#endif
