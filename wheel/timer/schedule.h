/* What scheduling and looking at timers share. */
#ifndef TW_WHEEL_SCHEDULE_H
#define TW_WHEEL_SCHEDULE_H

#include "wheel/core/service.h"
#include "wheel/core/ticks.h"
#include "wheel/core/context.h"
#include "wheel/core/local.h"

/* No word of an open gate. */
#define TW__NO_SHORT_WORD UINT64_MAX

/*
 * Bases of the short way are below this, and so far from 2^62 that no delay within the wheel's
 * reach leads there.
 */
#define TW__SHORT_BASES_NS (UINT64_C(1) << 61)

/* ------------------------------------------------------------ schedule.c */

/* tw_schedule and tw_schedule_at, whatever there is to them. */
int tw__schedule_in(tw_service *service, uint64_t delay_ns, tw_fn *fn, void *arg, tw_timer *out);
int tw__schedule_at(tw_service *service, uint64_t deadline_ns, tw_fn *fn, void *arg, tw_timer *out);

/*
 * A timer was pushed under a gate's word that said that nobody sleeps, and that has changed
 * meanwhile. What the call is to return.
 */
int tw__after_short_push(tw_service *service, struct tw__local *local, uint64_t entry,
			 tw_timer *out);

/* ---------------------------------------- what a task and a batch of them share */

/* A task made ready to be armed. */
struct tw__arming {
	enum tw__kind kind; /* KIND_PADDING: it is not armed */
	uint64_t value;
	uint32_t ext; /* extension record, or 0 */
};

/*
 * Whether there is more to it than fn, arg and one instant. A field of struct tw_task that needs an
 * extension record is named here.
 */
static inline bool tw__task_needs_option(const tw_service *service, const struct tw_task *task)
{
	return task->release || task->period || task->flags & TW_TASK_BACKGROUND || task->name ||
	       (task->executor && task->executor != service->executor);
}

/*
 * A task in the struct that we know, with fn, arg, one instant, and perhaps a group: what a check
 * would look at beside these and the range is zero.
 */
static inline bool tw__task_is_short(const struct tw_task *task)
{
	/* first: an older caller's may end before the fields below */
	if (tw_unlikely(task->size != sizeof *task))
		return false;
	uint32_t numbers = (task->flags & ~(uint32_t)TW_TASK_AT) | task->reserved;
	uintptr_t pointers = (uintptr_t)task->period | (uintptr_t)task->release |
			     (uintptr_t)task->executor | (uintptr_t)task->context |
			     (uintptr_t)task->name;
	return task->fn && !(numbers | pointers);
}

/* A persistent timer that is not armed yet. */
static inline bool tw__task_is_disarmed(const struct tw_task *task)
{
	return task->flags & TW_TASK_PERSISTENT && task->when_ns == TW_NEVER;
}

/* A deadline that the service cannot express. */
static inline bool tw__beyond_range(const tw_service *service, uint64_t deadline_ns)
{
	return deadline_ns > service->time.start_ns &&
	       deadline_ns - service->time.start_ns > TW_MAX_DELAY_NS;
}

/* Whether the service can express a task's delay, or its deadline. */
static inline bool tw__when_is_in_range(const tw_service *service, uint32_t flags, uint64_t when_ns)
{
	return flags & TW_TASK_AT ? !tw__beyond_range(service, when_ns)
				  : when_ns <= TW_MAX_DELAY_NS;
}

#endif
