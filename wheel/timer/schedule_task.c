/*
 * Tasks: reading them from older and newer callers, checking them, making their extension records.
 * Calls the slots.
 */
#include "wheel/timer/schedule.h"

#include <errno.h>

#include "mpsc/base/misuse.h"
#include "wheel/core/frame.h"

/* -------------------------------------------------------------------- check */

/* The delay or deadline that a task or its period names. */
static uint64_t task_first_of(const struct tw_task *task, const struct tw_period *period)
{
	return period && !(task->flags & TW_TASK_AT) ? period->first_ns : task->when_ns;
}

/* A persistent timer that is not armed yet. */
static bool is_disarmed(const struct tw_task *task)
{
	return task->flags & TW_TASK_PERSISTENT && task->when_ns == TW_NEVER;
}

static bool is_in_range(const tw_service *service, const struct tw_task *task,
			const struct tw_period *period)
{
	if (is_disarmed(task))
		return true;
	return tw__when_is_in_range(service, task->flags, task_first_of(task, period));
}

/* A drain would cut the series short. */
static bool has_end_in_background(const struct tw_task *task, const struct tw_period *period)
{
	return period && period->count && task->flags & TW_TASK_BACKGROUND;
}

static int task_check(const char *call, const tw_service *service, const struct tw_task *task,
		      const struct tw_period *period)
{
	const char *bad = NULL, *beyond = NULL;
	bool at = task->flags & TW_TASK_AT, persistent = task->flags & TW_TASK_PERSISTENT;
	const uint32_t flags =
	    TW_TASK_AT | TW_TASK_CONTEXT | TW_TASK_BACKGROUND | TW_TASK_PERSISTENT;
	tw__need(&bad, task->fn, "fn");
	tw__need(&bad, !(task->flags & ~flags), "flags");
	tw__need(&bad, !task->reserved, "reserved");
	tw__need(&bad, !period || !(persistent || (at && period->first_ns)), "period");
	tw__need(&bad, !has_end_in_background(task, period), "period");
	tw__need(&bad, !period || at || !task->when_ns, "when_ns");
	tw__need(&bad, !task->context || task->flags & TW_TASK_CONTEXT, "context");
	tw__need(&bad, tw__executor_is_sound(task->executor), "executor");
	tw__need(&beyond, is_in_range(service, task, period), "when_ns");
	return tw__bad_member(bad ? -EINVAL : -ERANGE, call, "tw_task", bad ? bad : beyond);
}

tw_cold int tw__task_read(const char *call, const tw_service *service, const struct tw_task **task,
			  struct tw_task *other, struct tw_period *period)
{
	int r = 0;
	if (tw_unlikely((*task)->size != sizeof **task)) {
		r = TW__STRUCT_READ(tw_task, other, when_ns, *task);
		if (r)
			return r;
		*task = other;
	}
	if ((*task)->period)
		r = tw__period_read(call, period, (*task)->period);
	return r ? r : task_check(call, service, *task, (*task)->period ? period : NULL);
}

/* -------------------------------------------------------------- extension records */

uint32_t tw__task_ext(tw_service *service, uint32_t slot, const struct tw_task *task,
		      const struct tw__arming *a)
{
	struct tw__ext *ext = &service->slots.exts[slot];
	uint32_t traits = (task->release ? TW__TRAIT_RELEASE : 0u) |
			  (task->period ? TW__TRAIT_SERIES : 0u) |
			  (task->flags & TW_TASK_BACKGROUND ? TW__TRAIT_BACKGROUND : 0u);
	bool names_another = task->executor && task->executor != service->executor;
	tw__slots_write(&service->slots, TW__EXTS);
	/* WORD5: pairs with outbox.c */
	tw_store_release(&ext->executor, names_another ? task->executor : NULL);
	/* published with the word: WORD1 */
	if (names_another && !tw_load_relaxed(&service->named_another))
		tw_store_relaxed(&service->named_another, true);
	tw_store_release(&ext->traits, traits);   /* WORD5 */
	tw_store_release(&ext->name, task->name); /* WORD5 */
	ext->release = task->release;
	ext->context = a ? a->context : NULL;
	return slot;
}

/* The context it names, or else the thread's. */
static void *task_context_of(const struct tw_task *task)
{
	return task->flags & TW_TASK_CONTEXT ? task->context : tw__context_capture();
}

struct tw__arming tw__task_prepare(tw_service *service, const struct tw_task *task,
				   const struct tw_period *period)
{
	struct tw__arming arming = {.task = task,
				    .kind = is_disarmed(task)          ? TW__KIND_PADDING
					    : task->flags & TW_TASK_AT ? TW__KIND_DEADLINE
								       : TW__KIND_DELAY,
				    .value = task_first_of(task, period),
				    .period = period,
				    .context = task_context_of(task)};
	arming.has_ext = arming.context || !tw__task_is_plain(service, task);
	arming.ext = arming.has_ext ? TW__EXT_NONE : tw__task_shared_ext(service, task);
	if (period && arming.kind == TW__KIND_DELAY) /* the first instant is exact */
		arming.value += tw__clock_read(service);
	if (period)
		arming.kind = TW__KIND_DEADLINE;
	return arming;
}
