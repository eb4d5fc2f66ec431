/* Running a task, and the host's calls. */
#ifndef TW_EXECUTOR_SCHEDULER_RUN_H
#define TW_EXECUTOR_SCHEDULER_RUN_H

#include "executor/scheduler/internal.h"

/* Called without the lock: calls the done function, and gives the context back. */
void tw__scheduler_tell(const tw_scheduler *scheduler, struct tw__deferred_done deferred,
			enum tw_fate fate, int result);

/* Tells whether the calling thread is in one of its turns or done functions. */
bool tw__scheduler_is_inside(const tw_scheduler *scheduler);

void tw__scheduler_host_called(struct tw__work *work);

#endif
