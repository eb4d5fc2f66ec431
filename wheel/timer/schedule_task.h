/* Reading, checking and preparing a task. */
#ifndef TW_WHEEL_TIMER_SCHEDULE_TASK_H
#define TW_WHEEL_TIMER_SCHEDULE_TASK_H

#include "mpsc/base/entry.h"
#include "wheel/core/service.h"

/* A timer to be. */
struct tw__arming {
	const struct tw_task *task;
	enum tw__kind kind; /* DELAY or DEADLINE, of `value`; PADDING: it is not armed */
	bool has_ext;       /* it needs an extension record of its own */
	uint32_t ext;       /* index of the one that it has else */
	uint64_t value;
	const struct tw_period *period;
	void *context;
};

/* A task that needs no extension record, unless it has a context. */
static inline bool tw__task_is_plain(const struct tw_task *task)
{
	const uint32_t flags = TW_TASK_AT | TW_TASK_CONTEXT | TW_TASK_PERSISTENT;
	uint32_t numbers = (task->flags & ~flags) | task->reserved;
	uintptr_t pointers = (uintptr_t)task->period | (uintptr_t)task->release |
			     (uintptr_t)task->executor | (uintptr_t)task->context |
			     (uintptr_t)task->name;
	return !(numbers | pointers);
}

/* A task without series or context, in which all but the range is as it should be. */
static inline bool tw__task_is_usual(const struct tw_task *task)
{
	const uint32_t flags =
	    TW_TASK_AT | TW_TASK_CONTEXT | TW_TASK_BACKGROUND | TW_TASK_PERSISTENT;
	return task->fn && !((task->flags & ~flags) | task->reserved) && !task->period &&
	       !task->context && tw__executor_is_sound(task->executor);
}

/*
 * Writes the extension record of a free slot, for a task; of a, which may be NULL: the context, and
 * the series. The record's index.
 */
uint32_t tw__task_ext(tw_service *service, uint32_t slot, const struct tw_task *task,
		      const struct tw__arming *a);

/*
 * Checks a task and its period, of an older or newer caller too: then *task becomes `other`, a
 * copy. 0, -EINVAL, -E2BIG, -ERANGE: told.
 */
int tw__task_read(const char *call, const tw_service *service, const struct tw_task **task,
		  struct tw_task *other, struct tw_period *period);

/* The bit of the control word. */
static inline uint64_t tw__task_persistent(const struct tw_task *task)
{
	return task->flags & TW_TASK_PERSISTENT ? TW__PERSISTENT : 0;
}

/* Says how to arm it. Captures the thread's context, if there is one. */
struct tw__arming tw__task_prepare(const tw_service *service, const struct tw_task *task,
				   const struct tw_period *period);

#endif
