/* What arming a timer shares with resets, series, and the layers above. */
#ifndef TW_WHEEL_SCHEDULE_H
#define TW_WHEEL_SCHEDULE_H

#include "wheel/core/service.h"
#include "mpsc/base/entry.h"

static inline bool tw__beyond_range(const tw_service *service, uint64_t deadline_ns)
{
	return deadline_ns > service->time.start_ns &&
	       deadline_ns - service->time.start_ns > TW_MAX_DELAY_NS;
}

static inline bool tw__when_is_in_range(const tw_service *service, uint32_t flags, uint64_t when_ns)
{
	return flags & TW_TASK_AT ? !tw__beyond_range(service, when_ns)
				  : when_ns <= TW_MAX_DELAY_NS;
}

/* ------------------------------------------------------------ schedule_task.c */

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

/* A sound task that needs no extension record of its own, unless it has a context. */
static inline bool tw__task_is_plain(const tw_service *service, const struct tw_task *task)
{
	uintptr_t options = (uintptr_t)task->period | (uintptr_t)task->release |
			    (uintptr_t)task->name | (task->flags & TW_TASK_BACKGROUND);
	return !options && (!task->executor || task->executor == service->inline_executor);
}

/* The extension record of a plain task: none, or the one of all that the driver runs. */
static inline uint32_t tw__task_shared_ext(tw_service *service, const struct tw_task *task)
{
	if (!task->executor || task->executor == service->executor)
		return TW__EXT_NONE;
	/* written once; published with the word: WORD1 */
	if (tw_unlikely(!tw_load_relaxed(&service->named_another)))
		tw_store_relaxed(&service->named_another, true);
	return TW__EXT_INLINE;
}

/* A task without series or context, in which all but the range is as it should be. */
static inline bool tw__task_is_usual(const struct tw_task *task)
{
	const uint32_t flags =
	    TW_TASK_AT | TW_TASK_CONTEXT | TW_TASK_BACKGROUND | TW_TASK_PERSISTENT;
	return task->fn && !((task->flags & ~flags) | task->reserved) && !task->period &&
	       !task->context && tw__executor_is_sound(task->executor);
}

/* Writes the extension record of a free slot, for a task. a: or NULL. Returns its index. */
uint32_t tw__task_ext(tw_service *service, uint32_t slot, const struct tw_task *task,
		      const struct tw__arming *a);

/*
 * Checks a task and its period. If they are of another version of the struct, *task becomes
 * `other`, a copy. 0, -EINVAL, -E2BIG, -ERANGE: told.
 */
int tw__task_read(const char *call, const tw_service *service, const struct tw_task **task,
		  struct tw_task *other, struct tw_period *period);

/* The bit of the control word. */
static inline uint64_t tw__task_persistent(const struct tw_task *task)
{
	return task->flags & TW_TASK_PERSISTENT ? TW__PERSISTENT : 0;
}

/* Captures the thread's context, if there is one. */
struct tw__arming tw__task_prepare(tw_service *service, const struct tw_task *task,
				   const struct tw_period *period);

/* ------------------------------------------------------------------- reset.c */

/* Puts the entry of a timer that had none when its word became `armed`. The lane has room. */
static inline void tw__put_armed_again(const tw_service *service, struct tw__local *local,
				       uint32_t slot, uint64_t armed, uint64_t tick)
{
	bool relocated = armed & TW__RELOCATED; /* planted: relocated_blindly */
	/* planted: entry_covered */
	enum tw__kind kind = relocated ? TW__KIND_BACK : TW__KIND_DEADLINE;
	uint64_t entry = tw__entry_make(slot, tw__word_generation(armed));
	tw__lane_put(&local->lane, tw__what_make(kind, entry),
		     relocated ? tick : tw__tick_ns(service, tick));
}

/* The word has changed. This is no errno and no outcome. */
enum { TW__RESET_AGAIN = 4096 };

/* Returns what tw_reset returns, or TW__RESET_AGAIN with *word as it is now. closed: it drains. */
int tw__reset_seen(tw_service *service, uint64_t entry, uint64_t *word, uint64_t deadline_ns,
		   bool only_earlier, bool closed);

/* -------------------------------------------------------------------- series */

/*
 * How many instants of a fixed-rate series get no run, of those that are past: the first of them
 * was behind_ns ago.
 */
static inline uint64_t tw__instants_missed(enum tw_missed_policy missed, uint64_t period_ns,
					   uint64_t behind_ns)
{
	if (missed == TW_MISSED_BURST)
		return 0; /* planted: burst_skips */
	uint64_t past = behind_ns / period_ns + 1;
	return missed == TW_MISSED_SKIP ? past : past - 1; /* planted: one_instant_more */
}

#endif
