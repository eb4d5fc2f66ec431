/* The scheduler's log. Under the lock. */
#ifndef TW_EXECUTOR_SCHEDULER_LOG_H
#define TW_EXECUTOR_SCHEDULER_LOG_H

#include "executor/scheduler/internal.h"

void tw__scheduler_log_slowly(tw_scheduler *scheduler, const struct tw__task *task,
			      enum tw_scheduler_event_kind kind, int64_t now_ns, int result);

static inline void tw__scheduler_log(tw_scheduler *scheduler, const struct tw__task *task,
				     enum tw_scheduler_event_kind kind, int64_t now_ns, int result)
{
	if (tw_unlikely(scheduler->log.events != NULL))
		tw__scheduler_log_slowly(scheduler, task, kind, now_ns, result);
}

#endif
