/*
 * Tasks: the full form of what is to be scheduled. Reading them from older and newer callers,
 * checking them, making their extension records.
 */
#include <errno.h>
#include <inttypes.h>

#include "wheel/timer/member.h"
#include "wheel/timer/schedule_task.h"
#include "mpsc/base/struct_read.h"
#include "mpsc/base/misuse.h"

/* -------------------------------------------------------------------- check */

int tw__period_read(const char *call, struct tw_period *out, const struct tw_period *in)
{
	const char *bad = NULL, *beyond = NULL;
	int r = TW__STRUCT_READ(tw_period, out, mode, in);
	if (r)
		return r;
	tw__need(&bad, out->period_ns > 0, "period_ns");
	tw__need(&bad, (unsigned)out->mode <= TW_FIXED_DELAY, "mode");
	tw__need(&bad, (unsigned)out->missed <= TW_MISSED_BURST, "missed");
	tw__need(&bad, !out->reserved, "reserved");
	tw__need(&beyond, out->period_ns <= TW_MAX_DELAY_NS, "period_ns");
	tw__need(&beyond, out->first_ns <= TW_MAX_DELAY_NS, "first_ns");
	return tw__bad_member(bad ? -EINVAL : -ERANGE, call, "tw_period", bad ? bad : beyond);
}

/* The delay or deadline that a task or its period names. */
static uint64_t task_first_of(const struct tw_task *task, const struct tw_period *period)
{
	return period && !(task->flags & TW_TASK_AT) ? period->first_ns : task->when_ns;
}

static bool is_in_range(const tw_service *service, const struct tw_task *task,
			const struct tw_period *period)
{
	if (tw__task_is_disarmed(task))
		return true;
	return tw__when_is_in_range(service, task->flags, task_first_of(task, period));
}

/*
 * Whether a drain, which waits for no background timer, would cut a series short that has a count.
 */
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

int tw__task_read(const char *call, const tw_service *service, const struct tw_task **task,
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

static uint32_t traits_of(const struct tw_task *task)
{
	return (task->release ? TW__TRAIT_RELEASE : 0u) | (task->period ? TW__TRAIT_SERIES : 0u) |
	       (task->flags & TW_TASK_BACKGROUND ? TW__TRAIT_BACKGROUND : 0u);
}

static void name_executor(tw_service *service, struct tw__ext *ext, tw_executor *executor)
{
	tw_store_release(&ext->executor, executor);    /* WORD5: pairs with outbox.c */
	if (!tw_load_relaxed(&service->named_another)) /* else its line stays unwritten */
		tw_store_relaxed(&service->named_another,
				 true); /* published with the word: WORD1 */
}

static void fill_option(tw_service *service, struct tw__ext *ext, const struct tw_task *task,
			const struct tw_period *period, void *context)
{
	tw_store_release(&ext->traits, traits_of(task)); /* WORD5 */
	tw_store_release(&ext->name, task->name);        /* WORD5 */
	tw_store_relaxed(&ext->is_moved, 0);             /* WORD8 */
	ext->release = task->release;
	ext->context = context;
	if (task->executor && task->executor != service->executor)
		name_executor(service, ext, task->executor);
	if (period) {
		ext->period_ns = period->period_ns;
		ext->runs_left = period->count;
		ext->fixed_delay = period->mode == TW_FIXED_DELAY;
		ext->missed = (uint8_t)period->missed;
	}
}

/* The timer was refused, perhaps after others could see it (retract). */
void tw__task_discard(tw_service *service, struct tw__local *local, uint32_t index)
{
	tw__ext_put(&service->slots, &local->exts, index);
}

/* The first instant of a series, exact: the clock is read. */
static void set_first_instant(tw_service *service, struct tw__ext *ext, uint64_t *now_ns,
			      struct tw__arming *arming)
{
	if (arming->kind == TW__KIND_DELAY && !*now_ns)
		*now_ns = tw__clock_read(service);
	if (arming->kind == TW__KIND_DELAY)
		arming->value += *now_ns;
	arming->kind = TW__KIND_DEADLINE;
	ext->nominal_ns = arming->value;
}

/* The context it names, or else the thread's. */
static void *task_context_of(const struct tw_task *task)
{
	if (tw_likely(!(task->flags & TW_TASK_CONTEXT)))
		return tw__context_capture();
	if (task->context)
		tw__context_turn_on();
	return task->context;
}

int tw__task_prepare(tw_service *service, struct tw__local *local, const struct tw_task *task,
		     const struct tw_period *period, uint64_t *now_ns, struct tw__arming *arming)
{
	arming->kind = tw__task_is_disarmed(task) ? TW__KIND_PADDING
		       : task->flags & TW_TASK_AT ? TW__KIND_DEADLINE
						  : TW__KIND_DELAY;
	arming->value = task_first_of(task, period);
	void *context = task_context_of(task);
	if (!context && !tw__task_needs_option(service, task))
		return 0;
	arming->ext = tw__ext_get(&service->slots, &local->exts);
	if (!arming->ext)
		return -ENOMEM;
	struct tw__ext *ext = &service->slots.exts[arming->ext];
	fill_option(service, ext, task, period, context);
	if (period)
		set_first_instant(service, ext, now_ns, arming);
	return 0;
}
